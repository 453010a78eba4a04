// Reads which content codings a client takes (RFC 9110, 12.5.3).

/** The best compression first. A file with the extension has the content of the file beside it in this coding. */
const CODINGS = [
  { coding: 'br', extension: '.br' },
  { coding: 'zstd', extension: '.zst' },
  { coding: 'gzip', extension: '.gz' },
];

/** @returns the codings that the client takes, the preferred one first */
export function codingsFor(acceptEncoding: string | undefined): typeof CODINGS {
  if (acceptEncoding === undefined) return [];
  const weights = new Map<string, number>();
  for (const entry of acceptEncoding.toLowerCase().split(',')) {
    const [name = '', ...parameters] = entry.split(';').map((part) => part.trim());
    const weight = parameters.find((parameter) => /^q\s*=/.test(parameter));
    weights.set(name, weight === undefined ? 1 : Number(weight.split('=')[1]) || 0);
  }
  const weightOf = (coding: string) => weights.get(coding) ?? weights.get('*') ?? 0;
  return CODINGS.filter(({ coding }) => weightOf(coding) > 0).sort((a, b) => weightOf(b.coding) - weightOf(a.coding));
}
