// Finds the file of PUBLIC_DIR that a path outside of BASE_PATH names, and the answer with it. Every answer is fresh:
// the content of a file of up to 1 MB is kept in memory, and its state is compared at each request.
import type { IncomingHttpHeaders } from 'node:http';
import { refusal } from '../../base/errors.ts';
import { entityTagOf, modifiedTimeOf } from '../../base/files/file-body.ts';
import { isCompressible, mediaTypeOf } from '../../base/files/media-types.ts';
import {
  bytesInStreams,
  type FileContent,
  type FileState,
  isBelow,
  isSameState,
  openFile,
  SMALL_BYTES,
  stateOf,
} from '../../base/files/open-file.ts';
import { whyNotPublic } from '../../base/files/public-dir.ts';
import { isServable } from '../../base/files/servable.ts';
import type { Log } from '../../base/log.ts';
import { mergeHeaders } from '../../base/own-headers.ts';
import { isPlainObject } from '../../base/values.ts';
import type { ServiceDefinition } from '../../callers/access/definition.ts';
import { isRead } from '../answer/conditional.ts';
import { nameKind } from '../answer/json.ts';
import { type Answer, NO_BODY, readHeaders } from '../answer/result.ts';
import type { TargetPath } from '../target.ts';
import { codingsFor } from './codings.ts';
import { createReleases } from './releases.ts';

type FileHeaders = NonNullable<ServiceDefinition['fileHeaders']>;

export interface FileRequest {
  readonly verb: string;
  readonly path: TargetPath;
  readonly queryText: string;
  readonly headers: IncomingHttpHeaders;
  /** Returns header fields of the service file for the file with a path below the folder. */
  readonly headersOf?: FileHeaders | undefined;
}

export type PublicFiles = ReturnType<typeof createPublicFiles>;

export interface PublicFilesOptions {
  readonly dir: string;
  /** The name of the page for paths that the front end routes; undefined when there is none. */
  readonly fallback: string | undefined;
  readonly controllersDir: string;
  readonly dataDir: string;
  readonly log: Log;
}

/** Bytes of all files in memory. As many bytes can be in memory for streams of files that are kept no more. */
const MAX_KEPT_BYTES = 16 * 1024 * 1024;
/** Bytes of the largest file in memory. */
const MAX_KEPT_FILE = 1024 * 1024;
/** Bytes of an entry beside the content of its file. */
const ENTRY_BYTES = 1024;
const IMMUTABLE = 'public, max-age=31536000, immutable';
const INDEX = 'index.html';
const NOT_FOUND_PAGE = '404.html';
/** Finds `text/html` among the types that a client takes, but not with `q=0`. */
const TAKES_PAGE = /(?:^|,)\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*(?:[,;]|$))[^,;]*)*(?:,|$)/i;

interface Found {
  readonly root: string;
  /** The path below the root. */
  readonly name: string;
  readonly state: FileState;
  /** The one address of the file, where the path has another one. */
  readonly address?: string;
}

export function createPublicFiles(options: PublicFilesOptions) {
  const { dir, fallback, controllersDir, dataDir, log } = options;
  const whyNot = (path: string) => whyNotPublic(path, { CONTROLLERS_DIR: controllersDir, DATA_DIR: dataDir });
  const releases = createReleases(dir, dataDir, whyNot, log);
  /** By path. The least recently used is the first. */
  const kept = new Map<string, FileContent>();
  let keptBytes = 0;

  function open({ root, name, state }: Found): FileContent | undefined {
    const path = `${root}/${name}`;
    const known = kept.get(path);
    if (known !== undefined) forget(path, known);
    const isSame = known !== undefined && isSameState(state, known.state);
    // The first answer has brought the file into the page cache of the system, so the second one may read it at once.
    const isReady = isSame && (known.bytes !== undefined || known.size > MAX_KEPT_FILE);
    const mayKeep = isSame && bytesInStreams() < MAX_KEPT_BYTES;
    const content = isReady ? known : openFile(root, name, mayKeep ? MAX_KEPT_FILE : SMALL_BYTES);
    if (content === undefined) return undefined;
    kept.set(path, content);
    keptBytes += weightOf(content);
    for (const [oldest, old] of kept) {
      if (keptBytes <= MAX_KEPT_BYTES) break;
      forget(oldest, old);
    }
    return content;
  }

  function forget(path: string, content: FileContent): void {
    kept.delete(path);
    keptBytes -= weightOf(content);
  }

  function locate(root: string, { segments, endsInSlash }: TargetPath): Found | undefined {
    const name = segments.join('/');
    if (segments.length === 0) return fileAt(root, INDEX);
    const address = `/${segments.map(encodeURIComponent).join('/')}`;
    const names = segments.at(-1)?.includes('.') ? [name, `${name}.html`] : [`${name}.html`, name];
    const file = fileAt(root, ...names);
    if (file !== undefined && !endsInSlash) return file;
    const index = fileAt(root, `${name}/${INDEX}`);
    if (index !== undefined) return endsInSlash ? index : { ...index, address: `${address}/` };
    return file && { ...file, address };
  }

  /** Finds the file that a path names, or a redirect to its one address. @throws HttpError METHOD_NOT_ALLOWED */
  function find(request: FileRequest): Answer | undefined {
    const { path, queryText } = request;
    if (!isServable(path.segments)) return undefined;
    for (const root of releases.rootsFor(path.segments)) {
      const found = locate(root, path);
      if (found === undefined) continue;
      // A client must not learn which files a link reaches outside of the folder.
      if ((!isRead(request) || found.address !== undefined) && !isBelow(root, found.name)) continue;
      if (!isRead(request)) throw refusal('METHOD_NOT_ALLOWED', undefined, { headers: { Allow: 'GET, HEAD' } });
      if (found.address !== undefined) return redirect(found.address + (queryText === '' ? '' : `?${queryText}`));
      const answer = answerWith(found, request);
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  function answerWith(found: Found, { headers, headersOf }: FileRequest): Answer | undefined {
    const type = mediaTypeOf(found.name);
    const cacheControl = releases.isImmutable(found.root, found.name) ? IMMUTABLE : 'no-cache';
    const own = ownHeadersOf(found.name, headersOf);
    const fields = { 'Content-Type': type, 'Cache-Control': cacheControl };
    const lines: string[] = [];
    if (isCompressible(type)) {
      lines.push('Vary', 'Accept-Encoding');
      // A part of a file is a part of the file itself, and not of a compressed one.
      const codings = headers.range === undefined ? codingsFor(headers['accept-encoding']) : [];
      for (const { coding, extension } of codings) {
        const compressed = fileAt(found.root, found.name + extension);
        // A compressed file that is older than the file is that of an earlier build.
        if (compressed === undefined || compressed.state.mtimeNs < found.state.mtimeNs) continue;
        const content = open(compressed);
        if (content === undefined) continue;
        return answerOf(content, [...lines, 'Content-Encoding', coding], fields, own, coding);
      }
    }
    const content = open(found);
    return content && answerOf(content, lines, fields, own);
  }

  /** Returns the page for a path that the front end routes, or the page for a path that names nothing. */
  function findPage(request: FileRequest): Answer | undefined {
    const { headers } = request;
    const { segments, endsInSlash } = request.path;
    if (!isRead(request)) return undefined;
    const root = releases.current();
    if (root === undefined) return undefined;
    if (
      fallback !== undefined &&
      TAKES_PAGE.test(headers.accept ?? '') &&
      !(segments.at(-1)?.includes('.') && !endsInSlash)
    ) {
      const page = fileAt(root, fallback);
      if (page !== undefined) return answerWith(page, request);
    }
    const page = fileAt(root, NOT_FOUND_PAGE);
    const content = page && open(page);
    if (content === undefined) return undefined;
    const body = { kind: 'file', content } as const;
    const own = { 'Content-Type': mediaTypeOf(NOT_FOUND_PAGE), ...ownHeadersOf(NOT_FOUND_PAGE, request.headersOf) };
    return { status: 404, ...readFields(mergeHeaders(own, { 'Cache-Control': 'no-store' })), body };
  }

  /** `hasFallback`: whether there is a page for paths that the front end routes. */
  return { hasFallback: fallback !== undefined, find, findPage };
}

/** Returns the first of the names that is the name of a file. */
function fileAt(root: string, ...names: readonly string[]): Found | undefined {
  for (const name of names) {
    const state = stateOf(`${root}/${name}`);
    if (state?.isFile() === true) return { root, name, state };
  }
  return undefined;
}

function weightOf({ bytes }: FileContent): number {
  return ENTRY_BYTES + (bytes?.length ?? 0);
}

type HeaderFields = Readonly<Record<string, string | undefined>>;

/** @throws TypeError when the function of the service file returns no plain object of headers */
function ownHeadersOf(name: string, headersOf: FileHeaders | undefined): HeaderFields {
  const own: unknown = headersOf?.(name) ?? {};
  // `Object.entries` reads a Map or a promise as empty, so a file would lack its Content-Security-Policy.
  if (isPlainObject(own)) return own as HeaderFields;
  throw new TypeError(`public.headers returned ${nameKind(own)} for ${name}: return a plain object`);
}

const readFields = (fields: HeaderFields) => readHeaders(Object.entries(fields), true);

function redirect(address: string): Answer {
  // Without `no-cache`, a browser may keep a 308 for ever.
  return { status: 308, ...readFields({ Location: address, 'Cache-Control': 'no-cache' }), body: NO_BODY };
}

/** @param own headers of the service file, which win over `fields` @param lines headers that it cannot replace */
function answerOf(
  content: FileContent,
  lines: readonly string[],
  fields: HeaderFields,
  own: HeaderFields,
  coding?: string,
): Answer {
  const validators = { ETag: entityTagOf(content, coding), 'Last-Modified': modifiedTimeOf(content) };
  const read = readFields(mergeHeaders({ ...validators, ...fields }, own));
  return { status: 200, ...read, headers: [...read.headers, ...lines], body: { kind: 'file', content } };
}
