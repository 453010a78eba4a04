// SHA-256 (FIPS 180-4) of a secret that a request brought, to be compared with the digests that are stored. node:crypto makes
// those, and the tests hold the two against each other. This one exists for its size: a call of node:crypto goes through so
// much code that nothing else of a request uses that fetching it costs 8 to 10 µs, on every request of an application
// (docs/PERFORMANCE.md). No branch and no index depends on the secret, which its sender knows anyway.

/** What one block holds beside the mark of the end and the length. */
const MOST_BYTES = 55;

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
// biome-ignore format: eight a line, as the standard prints them
const K = Int32Array.of(
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
);

/** The square roots of the first eight primes likewise (5.3.3). */
const START = Int32Array.of(0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19);

/** The block, and then always the last 16 words of the message schedule: one cache line. */
const words = new Int32Array(16);
const digest = Buffer.alloc(32);

/**
 * To be compared at once: every call has the same Buffer, as a new one costs more than to fill it.
 *
 * @param secret ASCII
 * @throws RangeError when it is longer than 55 characters
 */
export function digestOf(secret: string): Buffer {
  const { length } = secret;
  if (length > MOST_BYTES) throw new RangeError(`A secret of ${length} characters is longer than one block`);
  for (let i = 0; i < 16; i++) words[i] = 0;
  for (let i = 0; i < length; i++) words[i >> 2] = word(i >> 2) | (secret.charCodeAt(i) << (24 - 8 * (i & 3)));
  words[length >> 2] = word(length >> 2) | (0x80 << (24 - 8 * (length & 3)));
  words[15] = 8 * length;
  compress();
  return digest;
}

/** Words of 32 bits throughout: `| 0` takes a sum modulo 2^32, and `x >>> n | x << (32 - n)` turns x right by n. */
function compress(): void {
  let a = START[0] as number;
  let b = START[1] as number;
  let c = START[2] as number;
  let d = START[3] as number;
  let e = START[4] as number;
  let f = START[5] as number;
  let g = START[6] as number;
  let h = START[7] as number;
  for (let t = 0; t < 64; t++) {
    if (t >= 16) {
      const w15 = word(t - 15);
      const w2 = word(t - 2);
      const s0 = ((w15 >>> 7) | (w15 << 25)) ^ ((w15 >>> 18) | (w15 << 14)) ^ (w15 >>> 3);
      const s1 = ((w2 >>> 17) | (w2 << 15)) ^ ((w2 >>> 19) | (w2 << 13)) ^ (w2 >>> 10);
      words[t & 15] = word(t) + s0 + word(t - 7) + s1;
    }
    const sum1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const choice = (e & f) ^ (~e & g);
    const t1 = (h + sum1 + choice + (K[t] as number) + word(t)) | 0;
    const sum0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + sum0 + majority) | 0;
  }
  put(0, a);
  put(1, b);
  put(2, c);
  put(3, d);
  put(4, e);
  put(5, f);
  put(6, g);
  put(7, h);
}

/** Of the schedule: word t - 16 is where word t goes. */
function word(t: number): number {
  return words[t & 15] as number;
}

function put(at: number, value: number): void {
  const sum = (START[at] as number) + value;
  digest[4 * at] = sum >>> 24;
  digest[4 * at + 1] = sum >>> 16;
  digest[4 * at + 2] = sum >>> 8;
  digest[4 * at + 3] = sum;
}
