// Says which names below a folder may be served. The names come from a client.

/** The device names of Windows, which are devices with any extension, too. */
const DEVICE = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:\.|$)/i;
/** Separators, drives and streams of Windows, and bytes that no name of a file may have. */
const UNSAFE = /[\\/:\u0000-\u001f]/;
/** The one folder whose name begins with a dot and whose content is public (RFC 8615). */
const WELL_KNOWN = '.well-known';

/** Says whether a path may be served: no hidden file, no step upwards, no device. @param segments decoded, each once */
export function isServable(segments: readonly string[]): boolean {
  return segments.every(
    (segment) =>
      segment !== '' &&
      !UNSAFE.test(segment) &&
      !DEVICE.test(segment) &&
      (!segment.startsWith('.') || segment === WELL_KNOWN),
  );
}
