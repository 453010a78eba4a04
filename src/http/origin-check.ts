// One step of a request: checks whether a web page of another origin may make the request. CORS alone does not stop the
// post of a form, which a browser sends with the cookies of its user and without a preflight.
import { refusal } from '../base/errors.ts';
import type { CorsPolicy } from '../service/cors.ts';
import type { Exchange, Step } from './exchange.ts';

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** @returns the step, or an empty list when `cors` does not let browsers send cookies from other origins */
export function createOriginSteps(cors: CorsPolicy | undefined, isSecure: boolean): readonly Step[] {
  if (cors?.credentials !== true) return [];
  return [
    function checkOrigin(exchange): undefined {
      const { origin } = exchange.head;
      if (SAFE_METHODS.has(exchange.verb)) return;
      // Without `Origin`, an old browser may still say that the page is of another site.
      if (origin === undefined) {
        if (exchange.request.headers['sec-fetch-site'] === 'cross-site') throw refusal('ORIGIN_NOT_ALLOWED');
      } else if (cors.allows?.(origin) !== true && !isOwnOrigin(exchange, origin, isSecure))
        throw refusal('ORIGIN_NOT_ALLOWED');
    },
  ];
}

/** @param isSecure whether TLS ends in this process; if not, a proxy may end TLS, so any scheme of the origin fits */
function isOwnOrigin({ head: { host } }: Exchange, origin: string, isSecure: boolean): boolean {
  const [, scheme, authority] = /^(https?):\/\/(.+)$/.exec(origin) ?? [];
  // A proxy can write the default port into Host. An origin never contains a default port.
  const ownAuthority = host?.toLowerCase().replace(scheme === 'https' ? /:443$/ : /:80$/, '');
  return ownAuthority !== undefined && authority === ownAuthority && (scheme === 'https' || !isSecure);
}
