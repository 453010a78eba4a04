// One step of a request: whether a page of another origin may make it. CORS alone stops no simple form post, which a
// browser sends with the cookies of its user and without a preflight.
import { refusal } from '../base/errors.ts';
import type { CorsPolicy } from '../service/cors.ts';
import type { Exchange, Step } from './exchange.ts';

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** @returns no step where browsers send no cookies from other origins */
export function createOriginSteps(cors: CorsPolicy | undefined, isSecure: boolean): readonly Step[] {
  if (cors?.credentials !== true) return [];
  return [
    function checkOrigin(exchange): undefined {
      const { origin } = exchange.head;
      if (SAFE_METHODS.has(exchange.verb)) return;
      if (origin === undefined) {
        if (exchange.request.headers['sec-fetch-site'] === 'cross-site') throw refusal('ORIGIN_NOT_ALLOWED');
      } else if (cors.allows?.(origin) !== true && !isOwnOrigin(exchange, origin, isSecure))
        throw refusal('ORIGIN_NOT_ALLOWED');
    },
  ];
}

/** Behind a proxy that ends TLS the service sees plain HTTP, so the scheme counts only where TLS ends here. */
function isOwnOrigin({ head: { host } }: Exchange, origin: string, isSecure: boolean): boolean {
  const [, scheme, authority] = /^(https?):\/\/(.+)$/.exec(origin) ?? [];
  // A proxy may write the default port into Host. An origin never has that port.
  const own = host?.toLowerCase().replace(scheme === 'https' ? /:443$/ : /:80$/, '');
  return own !== undefined && authority === own && (scheme === 'https' || !isSecure);
}
