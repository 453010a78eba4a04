// The lines of a terminal in development: the URLs that answer at the start, and those that each change adds or
// removes.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createInk } from '../../../src/base/ink.ts';
import { type AnnouncerOptions, createAnnouncer } from '../../../src/operate/cli/announce.ts';
import { ask } from '../../support/cluster-client.ts';
import { createFolder, spawnService, write } from '../../support/cluster-server.ts';

const ink = createInk({ isTTY: false, env: {} });

describe('createAnnouncer', () => {
  function announcer(settings: Partial<AnnouncerOptions['settings']> = {}) {
    let text = '';
    const add = (more: string) => {
      text += more;
    };
    const defaults = { controllersDir: '/srv/app/controllers', docs: 'on', basePath: '/api', mcp: 'off' } as const;
    const made = createAnnouncer({ settings: { ...defaults, ...settings }, cwd: '/srv/app', ink, write: add });
    const said = () => {
      const before = text;
      text = '';
      return before;
    };
    return { ...made, said };
  }
  const group = (name: string, ...operationNames: string[]) => ({
    group: name,
    file: `${name}Controller.ts`,
    ok: true,
    operationNames,
  });

  it('showAll lists the routes and the documents page; showChanges before it prints nothing', () => {
    const { showChanges, showAll, said } = announcer();
    showChanges([
      group('User', 'index', 'created', 'find'),
      { group: 'Bad', file: 'BadController.ts', ok: false, error: 'x' },
    ]);
    assert.equal(said(), '');
    showAll('http://localhost:3000');
    assert.deepEqual(said().split('\n'), [
      '',
      '  GET,HEAD  /api/user       index    controllers/UserController.ts',
      '  POST      /api/user       created  controllers/UserController.ts',
      '  any       /api/user/find  find     controllers/UserController.ts',
      '',
      '  Documents  http://localhost:3000/api/docs',
      '',
      '',
    ]);
  });

  it('showChanges prints added and removed routes, and nothing without a change', () => {
    const { showChanges, showAll, said } = announcer({ docs: 'off' });
    showChanges([group('User', 'index', 'deleted')]);
    showAll('http://localhost:3000');
    said();
    showChanges([group('User', 'index', 'deleted')]);
    assert.equal(said(), '');
    showChanges([group('User', 'index', 'GET {id}')]);
    assert.deepEqual(said().split('\n'), [
      '  + GET,HEAD  /api/user/{id}  GET {id}  controllers/UserController.ts',
      '  - DELETE  /api/user  deleted  controllers/UserController.ts',
      '',
    ]);
  });

  it('showAll lists the groups Docs and Mcp only while DOCS and MCP are off', () => {
    const routesOf = (settings: Partial<AnnouncerOptions['settings']>) => {
      const { showChanges, showAll, said } = announcer(settings);
      showChanges([group('Docs', 'index'), group('Mcp', 'index')]);
      showAll('http://localhost:3000');
      return [...said().matchAll(/^ {2}GET,HEAD +(\S+)/gm)].map(([, path]) => path);
    };
    assert.deepEqual(routesOf({ docs: 'off' }), ['/api/docs', '/api/mcp']);
    assert.deepEqual(routesOf({ mcp: 'on' }), []);
  });

  it('showAll prints how to make a controller when the service has no group', () => {
    const { showAll, said } = announcer({ docs: 'off' });
    showAll('http://localhost:3000');
    assert.match(said(), /Nothing answers yet: npx gatefold new hello makes a controller in controllers\n/);
  });
});

it('the service in development prints routes, requests and load errors for people', {
  timeout: 200_000,
}, async (test) => {
  const dir = createFolder(test, { 'TestController.js': 'export default class { index() { return {}; } }' });
  const env = { LOG_FORMAT: 'pretty', NODE_ENV: 'development', WORKERS: '1' };
  const { listening, errors, process: server } = spawnService(test, { dir, env });
  const port = await listening;
  const until = async (pattern: RegExp) => {
    while (!pattern.test(errors())) await new Promise((seen) => server.stderr?.once('data', seen));
  };
  await until(/GET,HEAD {2}\/api\/test {2}index /);
  write(dir, 'UserController.js', 'export default class { index() { return {}; } }');
  await ask(port, '/api/user');
  await until(/\+ GET,HEAD {2}\/api\/user {2}index /);
  await until(/ GET {5}\/api\/user +200 +\d+\.\d ms\n/);
  write(dir, 'TestController.js', 'export default class { index() { return {; } }');
  await until(
    /generation-rejected .*generation \d+ serves on\n.*SyntaxError.*\n.*TestController\.js:1.*\n.*export default.*\n +\^/,
  );
  rmSync(join(dir, 'UserController.js'));
  write(dir, 'TestController.js', 'export default class { index() { return {}; } created() { return {}; } }');
  await until(/generation-serving .*\n(?:.*\n)* {2}\+ POST {2}\/api\/test {2}created /);
  await until(/- GET,HEAD {2}\/api\/user {2}index /);
});
