// `fileReply`: an operation answers with a file of a folder. request/answer/replies.ts sends it.
import { basename, isAbsolute } from 'node:path';
import { refusal } from '../../base/errors.ts';
import { entityTagOf, FileBody, modifiedTimeOf } from '../../base/files/file-body.ts';
import { mediaTypeOf } from '../../base/files/media-types.ts';
import { openFile } from '../../base/files/open-file.ts';
import { isServable } from '../../base/files/servable.ts';
import { realPathOf } from '../../base/fingerprint.ts';
import { mergeHeaders } from '../../base/own-headers.ts';
import { isPlainObject } from '../../base/values.ts';
import { Reply, type ReplyHeaders } from './reply.ts';

export interface FileReplyOptions {
  /**
   * The name under which a browser saves the file; true: its own name. Without this, a browser may show the file. An
   * uploaded page or SVG would then run its scripts with the cookies of your users.
   */
  readonly download?: string | boolean;
  /** Headers of the answer, which replace those of the file. `Content-Type` replaces that of the extension. */
  readonly headers?: ReplyHeaders;
}

/**
 * Returns a reply with a file: whole, or the part that the client asks for (`Range`), or 304 where the client has it.
 *
 * @param root the absolute path of the folder, `resolve('data/uploads')`. A deployment keeps the working folder
 * @param path the path below the folder, which may come from a client. Hidden files and all outside of the folder are
 *   no files, also behind links
 * @throws HttpError FILE_NOT_FOUND; TypeError when `root` is not absolute
 * @example 'GET {name}'(data, { path }) { return fileReply(uploads, path.name, { download: true }); }
 */
export function fileReply(root: string, path: string, options: FileReplyOptions = {}): Reply<200, Uint8Array> {
  if (!isAbsolute(root)) throw new TypeError(`fileReply: ${root} must be an absolute path: resolve('${root}')`);
  const content = isServable(path.split('/')) ? openFile(realPathOf(root), path) : undefined;
  if (content === undefined) throw refusal('FILE_NOT_FOUND');
  const { download = false, headers = {} } = options;
  if (!isPlainObject(headers)) throw new TypeError('fileReply: headers must be a plain object');
  const name = download === true ? basename(path) : download;
  const fileHeaders: ReplyHeaders = {
    ETag: entityTagOf(content),
    'Last-Modified': modifiedTimeOf(content),
    ...(name === false ? {} : { 'Content-Disposition': `attachment; filename*=UTF-8''${encodeName(name)}` }),
  };
  // The body is sent as bytes, so this is what the document says.
  const body = new FileBody(content, mediaTypeOf(path)) as unknown as Uint8Array;
  return new Reply(200, body, mergeHeaders(fileHeaders, headers));
}

/** Encodes a name as RFC 8187 asks. `encodeURIComponent` leaves these characters as they are. */
function encodeName(name: string): string {
  return encodeURIComponent(name).replace(/['()*]/g, (character) => `%${character.charCodeAt(0).toString(16)}`);
}
