// Answers `GET /api/openapi.json` and the page `GET /api/docs`. The first request after a change makes the document.

import { Reply } from '../api/controller/reply.ts';
import type { ControllerParams } from '../api/controller.ts';
import { crypto, hash } from '../base/builtins.ts';
import { checkAccess } from '../callers/access/credential-rights.ts';
import type { DocumentedGroup, DocumentedService, DocumentInfo } from './documented.ts';
import { createDocument } from './openapi.ts';

export interface DocsParts {
  readonly access: 'on' | 'application' | 'off';
  readonly groups: () => Promise<readonly DocumentedGroup[]>;
  readonly info: () => DocumentInfo;
  readonly basePath: string;
  readonly service: () => DocumentedService | undefined;
  /** Reads the HTML that the build has made of src/documents/page. */
  readonly readPage: () => string;
}

type Handler = (data: unknown, params: Pick<ControllerParams, 'application'>) => Promise<Reply | Response>;

export function createDocs({ access, groups, info, basePath, service, readPage }: DocsParts) {
  let documentedGroups: readonly DocumentedGroup[] = [];
  let documentReply: Reply | undefined;
  let cachedPage: ReturnType<typeof addPolicy> | undefined;

  const openapi: Handler = async (_, { application }) => {
    if (access === 'application') checkAccess({ application }, access);
    const currentGroups = await groups();
    const isUpToDate =
      currentGroups.length === documentedGroups.length &&
      currentGroups.every((group, i) => group === documentedGroups[i]);
    if (documentReply === undefined || !isUpToDate) {
      const text = JSON.stringify(createDocument(currentGroups, info(), basePath, service()));
      const headers = { 'Content-Type': 'application/json; charset=UTF-8', ETag: entityTagOf(text), ...REVALIDATE };
      documentReply = new Reply(200, Buffer.from(text), headers);
      documentedGroups = currentGroups;
    }
    return documentReply;
  };

  const sendPage: Handler = async (_, { application }) => {
    cachedPage ??= addPolicy(withKeyHeader(readPage(), service()?.keyHeader));
    const { text, headers } = cachedPage;
    // A browser that opens a page sends no credential. So the body of the 401 is the page, which asks the user for one.
    // The page itself contains nothing about the service.
    if (access === 'application' && application === undefined) {
      const refusalHeaders = { ...headers, 'WWW-Authenticate': 'Bearer', 'Cache-Control': 'no-store' };
      return new Response(text, { status: 401, headers: refusalHeaders });
    }
    return new Reply(200, Buffer.from(text), { ...headers, ETag: entityTagOf(text), ...REVALIDATE });
  };

  return { openapi, page: sendPage };
}

/** Before each use of a kept answer, a client must ask whether it has changed, with its ETag. */
const REVALIDATE = { 'Cache-Control': 'no-cache' };

function entityTagOf(text: string): string {
  return `"${hash('sha256', text, 'base64url').slice(0, 27)}"`;
}

/** Writes the name of the key header into the page. Such a name has no quote, but it can have `&`. */
function withKeyHeader(text: string, keyHeader = ''): string {
  return text.replace('data-key-header=""', () => `data-key-header="${keyHeader.replaceAll('&', '&amp;')}"`);
}

/** With the Content-Security-Policy, a browser runs only the one script of the page, and calls only this service. */
function addPolicy(text: string) {
  const hashOf = (element: string) => {
    const [, content = ''] = new RegExp(`<${element}[^>]*>([^]*?)</${element}>`).exec(text) ?? [];
    return `'sha256-${crypto().createHash('sha256').update(content).digest('base64')}'`;
  };
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf('script')}`,
    `style-src ${hashOf('style')}`,
    "connect-src 'self'",
    'img-src data: blob:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  const headers = {
    'Content-Type': 'text/html; charset=UTF-8',
    'Content-Security-Policy': policy.join('; '),
    'Referrer-Policy': 'no-referrer',
  };
  return { text, headers };
}
