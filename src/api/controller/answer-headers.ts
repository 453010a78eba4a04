// The types of the functions that set headers of the answer: `params.setHeader`, `appendHeader` and `setCookie`.

export interface CookieOptions {
  /** Whether scripts of a page cannot read the cookie. Default: `true`. */
  readonly httpOnly?: boolean;
  /** Default: `Lax`. `None` needs `Secure`. */
  readonly sameSite?: 'Strict' | 'Lax' | 'None';
  /** Default: `true` under HTTPS, also when a proxy ends it. */
  readonly secure?: boolean;
  /** Default: `/`. */
  readonly path?: string;
  readonly domain?: string;
  /** Seconds until the browser drops the cookie; 0 drops it at once. Default: until the browser closes. */
  readonly maxAge?: number;
}

/**
 * Sets headers of whatever answer the request gets, also of a refusal. The functions throw for a header that belongs to
 * the server, for an invalid value, and when the answer has been sent.
 */
export interface HeaderSetters {
  /** Sets a header. A header of the same name that a `Reply` has wins over it. */
  readonly setHeader: (name: string, value: string | number) => void;
  /** Adds a line to the lines of a header. */
  readonly appendHeader: (name: string, value: string | number) => void;
  /** Sets a cookie, and `Cache-Control: no-store`. The value is encoded, and `params.cookies` decodes it. */
  readonly setCookie: (name: string, value: string, options?: CookieOptions) => void;
}
