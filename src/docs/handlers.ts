// What `GET /api/openapi.json` and `GET /api/docs` answer: the document, made at its first request and again when a
// group has come, and the page, which asks for the document. It knows no HTTP but what its answers say.
import { crypto } from '../base/builtins.ts';
import { refusal } from '../base/errors.ts';
import { Reply } from '../controller/reply.ts';
import type { ControllerParams } from '../controller.ts';
import { createDocument, type DocumentedGroup, type DocumentInfo } from './openapi.ts';

export interface DocsParts {
  /** `application`: to a request with a credential alone. */
  readonly access: 'on' | 'application' | 'off';
  /** All that serve, those that came since the start among them. */
  readonly groups: () => Promise<readonly DocumentedGroup[]>;
  readonly info: () => DocumentInfo;
  /** The page as it was built. */
  readonly readPage: () => string;
}

type Handler = (data: unknown, params: Pick<ControllerParams, 'application'>) => Promise<Reply | Response>;

export interface Docs {
  readonly openapi: Handler;
  readonly page: Handler;
}

export function createDocs({ access, groups, info, readPage }: DocsParts): Docs {
  let shown: readonly DocumentedGroup[] = [];
  let document: Promise<Reply> | undefined;
  let page: Page | undefined;

  const openapi: Handler = async (_, { application }) => {
    if (access === 'application' && application === undefined) {
      throw refusal('CREDENTIAL_REQUIRED', undefined, { headers: { 'WWW-Authenticate': 'Bearer' } });
    }
    const now = await groups();
    if (document === undefined || now.length !== shown.length || now.some((group, i) => group !== shown[i])) {
      shown = now;
      document = makeDocument(now);
      // What failed may succeed the next time.
      document.catch(() => {
        document = undefined;
      });
    }
    return document;
  };

  async function makeDocument(now: readonly DocumentedGroup[]): Promise<Reply> {
    const text = JSON.stringify(createDocument(now, info()));
    return new Reply(200, Buffer.from(text), {
      'Content-Type': 'application/json; charset=UTF-8',
      ETag: tagOf(text),
      ...REVALIDATED,
    });
  }

  const open: Handler = async (_, { application }) => {
    page ??= pageOf(readPage());
    const { text, headers } = page;
    // A browser cannot be made to send a credential for a page. This one says nothing of the service: it asks for one.
    if (access === 'application' && application === undefined) {
      return new Response(text, {
        status: 401,
        headers: { ...headers, 'WWW-Authenticate': 'Bearer', 'Cache-Control': 'no-store' },
      });
    }
    return new Reply(200, Buffer.from(text), { ...headers, ETag: tagOf(text), ...REVALIDATED });
  };

  return { openapi, page: open };
}

/** Kept by clients, and asked for again by its tag. */
const REVALIDATED = { 'Cache-Control': 'no-cache' };

function tagOf(text: string): string {
  return `"${crypto().createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`;
}

interface Page {
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Nothing runs and nothing is loaded but the page's own style and script, and it talks to its own service alone. */
function pageOf(text: string): Page {
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
