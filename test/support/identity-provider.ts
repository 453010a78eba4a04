// A certified OpenID provider (oidc-provider) on loopback, for tests: code flow with PKCE, RS256 and ES256, keys that
// rotate while the provider serves, and a method that stops it.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { makeKey } from './identity-tokens.ts';

/** The parts of oidc-provider that are used here. The package has no types. */
interface OidcProvider {
  callback(): (request: IncomingMessage, response: ServerResponse) => void;
  interactionDetails(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<{ params: { client_id: string }; uid: string }>;
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  readonly Grant: new (of: {
    accountId: string;
    clientId: string;
  }) => { addOIDCScope(scope: string): void; save(): Promise<string> };
}
type OidcProviderClass = new (issuer: string, configuration: object) => OidcProvider;
// The package name is a variable, because TypeScript refuses an import of a package without types.
const packageName: string = 'oidc-provider';
const { default: Provider } = (await import(packageName)) as { default: OidcProviderClass };

export interface Person {
  readonly subject: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly name?: string;
}

export interface TestProvider {
  readonly issuer: string;
  /** One client for each algorithm of the ID tokens. */
  readonly clientIds: { readonly RS256: string; readonly ES256: string };
  /** How often the key set was requested since the start. */
  readonly keyRequests: () => number;
  /** Gets a real ID token by an authorization request, a login with consent, a code, and a token request. */
  signIn(person: Person, options?: { alg?: 'RS256' | 'ES256'; nonce?: string }): Promise<string>;
  /** Replaces all keys while the provider serves. */
  rotateKeys(): void;
  goAway(): void;
  comeBack(): void;
  close(): Promise<void>;
}

const REDIRECT_URI = 'https://app.example/cb';
const CLIENT_SECRET = 'a-secret-of-the-test-client';
const clientIds = { RS256: 'web-rs256', ES256: 'web-es256' };

export async function startIdentityProvider(): Promise<TestProvider> {
  const people = new Map<string, Person>();
  let keyRequests = 0;
  let person = '';
  let provider: OidcProvider;
  let isAway = false;

  const server = createServer((request, response) => {
    if (request.url === '/jwks') keyRequests++;
    if (request.url?.startsWith('/interaction/')) void answerInteraction(request, response);
    else provider.callback()(request, response);
  });
  server.on('connection', (socket) => isAway && socket.destroy());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const issuer = `http://127.0.0.1:${port}`;
  rotateKeys();

  return { issuer, clientIds, keyRequests: () => keyRequests, signIn, rotateKeys, goAway, comeBack, close };

  function rotateKeys(): void {
    provider = new Provider(issuer, {
      jwks: { keys: [newKey('RS256'), newKey('ES256')] },
      clients: Object.entries(clientIds).map(([alg, id]) => ({
        client_id: id,
        client_secret: CLIENT_SECRET,
        redirect_uris: [REDIRECT_URI],
        response_types: ['code'],
        grant_types: ['authorization_code'],
        id_token_signed_response_alg: alg,
      })),
      cookies: { keys: [randomBytes(16).toString('hex')] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
      conformIdTokenClaims: false,
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      pkce: { required: () => true },
      ttl: { IdToken: 3600, AccessToken: 600, Grant: 600, Interaction: 600, Session: 600 },
      findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => claimsOf(id) }),
    });
  }

  function claimsOf(id: string): Record<string, unknown> {
    const { subject, ...claims } = people.get(id) ?? { subject: id };
    return { sub: subject, ...claims };
  }

  /** Does the login and the consent of the person who signs in. */
  async function answerInteraction(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { params } = await provider.interactionDetails(request, response);
    const grant = new provider.Grant({ accountId: person, clientId: params.client_id });
    grant.addOIDCScope('openid email profile');
    await provider.interactionFinished(request, response, {
      login: { accountId: person },
      consent: { grantId: await grant.save() },
    });
  }

  async function signIn(
    who: Person,
    { alg = 'RS256', nonce }: { alg?: 'RS256' | 'ES256'; nonce?: string } = {},
  ): Promise<string> {
    people.set(who.subject, who);
    person = who.subject;
    const verifier = randomBytes(32).toString('base64url');
    const query = new URLSearchParams({
      client_id: clientIds[alg],
      response_type: 'code',
      scope: 'openid email profile',
      redirect_uri: REDIRECT_URI,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      ...(nonce === undefined ? {} : { nonce }),
    });
    const code = await followToCode(`${issuer}/auth?${query}`);
    const answer = await fetch(`${issuer}/token`, {
      method: 'POST',
      headers: { Authorization: `Basic ${Buffer.from(`${clientIds[alg]}:${CLIENT_SECRET}`).toString('base64')}` },
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        code,
        redirect_uri: REDIRECT_URI,
        code_verifier: verifier,
      }),
    });
    const body = (await answer.json()) as { id_token?: string; error?: string };
    if (body.id_token === undefined) throw new Error(`The test provider gave no ID token: ${body.error}`);
    return body.id_token;
  }

  /** Follows redirects with cookies, as a browser does, until the client's redirect address. */
  async function followToCode(start: string): Promise<string> {
    const cookies = new Map<string, string>();
    for (let url = start, hops = 0; hops < 10; hops++) {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
      await response.arrayBuffer();
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        if (value === '') cookies.delete(name);
        else cookies.set(name, value);
      }
      const location = response.headers.get('location');
      if (location === null) throw new Error(`The test provider answered ${response.status} without a redirect`);
      url = new URL(location, issuer).href;
      if (!url.startsWith(REDIRECT_URI)) continue;
      const code = new URL(url).searchParams.get('code');
      if (code === null)
        throw new Error(`The test provider gave no code: ${new URL(url).searchParams.get('error_description')}`);
      return code;
    }
    throw new Error('The test provider redirected without end');
  }

  /** The port stays open, because another process could take it meanwhile. Each connection is cut. */
  function goAway(): void {
    isAway = true;
    server.closeAllConnections();
  }

  function comeBack(): void {
    isAway = false;
  }

  async function close(): Promise<void> {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }
}

function newKey(alg: 'RS256' | 'ES256'): object {
  const jwk = makeKey(alg).privateKey.export({ format: 'jwk' });
  return { ...jwk, alg, use: 'sig', kid: `${alg}-${randomBytes(6).toString('hex')}` };
}
