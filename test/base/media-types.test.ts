// The media types of files. With `nosniff`, a browser does not use a font, a script or a film of another type.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isCompressible, mediaTypeOf } from '../../src/base/files/media-types.ts';

const TYPES: Readonly<Record<string, string>> = {
  'text/html; charset=utf-8': 'html htm',
  'text/css; charset=utf-8': 'css',
  'text/javascript; charset=utf-8': 'js mjs',
  'text/xml; charset=utf-8': 'xml',
  'text/plain; charset=utf-8': 'txt',
  'text/markdown; charset=utf-8': 'md',
  'text/csv; charset=utf-8': 'csv',
  'text/calendar; charset=utf-8': 'ics',
  'text/vtt; charset=utf-8': 'vtt',
  'application/json': 'json map',
  'application/manifest+json': 'webmanifest',
  'application/wasm': 'wasm',
  'application/atom+xml': 'atom',
  'application/rss+xml': 'rss',
  'image/svg+xml': 'svg',
  'font/ttf': 'ttf',
  'font/otf': 'otf',
};
const COMPRESSED: typeof TYPES = {
  'font/woff': 'woff',
  'font/woff2': 'woff2',
  'image/png': 'png PNG',
  'image/jpeg': 'jpg jpeg',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'image/avif': 'avif',
  'image/x-icon': 'ico',
  'image/bmp': 'bmp',
  'application/pdf': 'pdf',
  'application/zip': 'zip',
  'application/gzip': 'gz',
  'audio/mpeg': 'mp3',
  'audio/mp4': 'm4a',
  'audio/ogg': 'ogg',
  'audio/wav': 'wav',
  'audio/flac': 'flac',
  'video/mp4': 'mp4',
  'video/webm': 'webm',
  'video/quicktime': 'mov',
  'application/octet-stream': 'bin toString',
};

for (const [types, compressible] of [
  [TYPES, true],
  [COMPRESSED, false],
] as const)
  for (const [type, extensions] of Object.entries(types))
    test(`${extensions}: ${type}, ${compressible ? 'worth' : 'not worth'} a compression`, () => {
      for (const extension of extensions.split(' ')) assert.equal(mediaTypeOf(`a/b.c.${extension}`), type);
      assert.equal(isCompressible(type), compressible);
    });

test('a name without an extension is of no known type', () => {
  for (const name of ['LICENSE', 'html', 'a.html/LICENSE', '.'])
    assert.equal(mediaTypeOf(name), 'application/octet-stream', name);
});
