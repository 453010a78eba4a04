#!/usr/bin/env node
// `npm create gatefold [FOLDER]` runs `gatefold init [FOLDER]` of the version that npm has fetched.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(import.meta.url);
const manifest = require.resolve('gatefold/package.json');
process.argv.splice(2, 0, 'init');
await import(pathToFileURL(join(dirname(manifest), require(manifest).bin.gatefold)).href);
