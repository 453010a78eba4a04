import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';

/** Writes `app.js.br` beside `app.js`, which Gatefold sends to browsers that take it. */
const compress: Plugin = {
  name: 'compress',
  writeBundle({ dir = '' }, bundle) {
    for (const path of Object.keys(bundle).map((name) => join(dir, name)))
      if (/\.(?:js|css|html|svg)$/.test(path)) writeFileSync(`${path}.br`, brotliCompressSync(readFileSync(path)));
  },
};

export default defineConfig({
  plugins: [compress],
  // One origin for the page and its API, as in production. With another `Host`, a request with cookies would be refused.
  server: {
    proxy: { '/api': { target: `http://127.0.0.1:${process.env.PORT ?? 3000}`, changeOrigin: false, ws: true } },
  },
  // The files that the manifest lists have a name of their own for each content, so browsers keep them for a year.
  build: { manifest: true },
});
