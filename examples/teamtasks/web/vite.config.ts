import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [react()],
  // One origin for the page and its API, as in production. With another `Host`, a request with cookies would be refused.
  server: { proxy: { '/api': { target: `http://127.0.0.1:${process.env.PORT ?? 3000}`, changeOrigin: false } } },
  // The files that the manifest lists have a name of their own for each content, so browsers keep them for a year.
  build: { manifest: true },
});
