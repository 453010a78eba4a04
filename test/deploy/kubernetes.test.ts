// Compares the Kubernetes manifests in deploy/ with the published types of the API, with the settings of the service,
// and with the other files in deploy/. Needs no cluster.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { parseSettings } from '../../src/base/config.ts';
import { type Settings, settingRows } from '../../src/base/settings.ts';
import { createFolder, DEPLOY, read, run, without } from '../support/deploy-proxy.ts';
import { type Plain, parsePlainYaml } from '../support/plain-yaml.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const SETTING_NAMES = settingRows({ cores: 1 }).map(({ name }) => name);
/** The milliseconds after DRAIN_TIMEOUT until the service has ended at the latest (KILL_GRACE of workers/pool.ts). */
const GRACE = 13_000;

describe('kubernetes', () => {
  const folder = join(DEPLOY, 'kubernetes');
  const files = (readdirSync(folder, { recursive: true }) as string[]).filter((name) => name.endsWith('.yaml'));
  const manifests = new Map(
    files.map((name) => [name, parsePlainYaml(readFileSync(join(folder, name), 'utf8')) as Record<string, Plain>]),
  );
  const deployment = manifests.get(join('base', 'deployment.yaml'));
  const spec = at(deployment, 'spec', 'template', 'spec');
  const container = at(spec, 'containers', 0);

  test('every manifest matches the types of the Kubernetes API', { skip: withoutTypes() }, (t) => {
    const types = dirname(createRequire(import.meta.url).resolve('kubernetes-types/package.json'));
    const workplace = createFolder(t);
    const path = join(workplace, 'manifests.ts');
    // Without this file, a package.json above the temporary folder would decide how types are resolved.
    writeFileSync(join(workplace, 'package.json'), '{}');
    const text = [...manifests].flatMap(([name, manifest], i) => {
      if (manifest.kind === 'Kustomization') return [];
      const module = String(manifest.apiVersion).includes('/') ? manifest.apiVersion : `core/${manifest.apiVersion}`;
      // A patch has only the changed fields. The patched manifest is checked with kubectl below.
      if (name.endsWith('mount.yaml')) return [];
      return [
        `import type { ${manifest.kind} as T${i} } from ${JSON.stringify(join(types, String(module)))};`,
        `export const m${i}: T${i} = ${JSON.stringify(manifest)}; // ${name}`,
      ];
    });
    writeFileSync(path, text.join('\n'));
    const tsc = join(ROOT, 'node_modules', '.bin', 'tsc');
    const { status, output } = run(tsc, [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--ignoreConfig',
      '--types',
      '',
      '--module',
      'nodenext',
      path,
    ]);
    assert.equal(status, 0, output);
  });

  test('kubectl builds the live-controllers overlay on the base', { skip: without('kubectl') }, () => {
    const { status, output } = run('kubectl', ['kustomize', join(folder, 'live-controllers')]);
    assert.equal(status, 0, output);
    for (const part of ['mountPath: /app/controllers', 'mountPath: /data', 'kind: PodDisruptionBudget'])
      assert.ok(output.includes(part), part);
  });

  test('kubectl builds the store overlay with its address from a Secret and a writable data volume', {
    skip: without('kubectl'),
  }, () => {
    const { status, output } = run('kubectl', ['kustomize', join(folder, 'store')]);
    assert.equal(status, 0, output);
    assert.match(output, /name: STORE\n\s+valueFrom:\n\s+secretKeyRef:\n\s+key: address/);
    assert.match(output, /mountPath: \/data\n\s+name: data\n/);
    assert.match(output, /emptyDir:/);
    assert.equal(output.match(/mountPath: \/data\n/g)?.length, 1);
  });

  test('a kustomization names every manifest in its folder', () => {
    for (const [name, manifest] of manifests) {
      if (manifest.kind !== 'Kustomization') continue;
      const named = [
        ...((manifest.resources ?? []) as string[]),
        ...((manifest.patches ?? []) as { path: string }[]).map(({ path }) => path),
      ];
      for (const path of named) assert.ok(existsSync(join(folder, dirname(name), path)), path);
      const beside = files
        .filter((file) => dirname(file) === dirname(name) && file !== name)
        .map((file) => file.slice(dirname(name).length + 1));
      assert.deepEqual(named.filter((path) => path.endsWith('.yaml')).sort(), beside.sort());
    }
  });

  test('the deployment sets only known settings, which match its ports, CPUs and mounts', () => {
    const rows = at(container, 'env') as readonly { name: string; value?: string }[];
    for (const { name } of rows) assert.ok(SETTING_NAMES.includes(name), name);
    const settings = settingsOfPod();
    const port = (name: string) =>
      (at(container, 'ports') as readonly { name: string; containerPort: number }[]).find((row) => row.name === name)
        ?.containerPort;
    assert.deepEqual([port('http'), port('ops')], [settings.port, settings.opsPort]);
    assert.equal(settings.opsHost, '0.0.0.0');
    assert.equal(settings.workers, Number(at(container, 'resources', 'requests', 'cpu')));
    const mounts = (at(container, 'volumeMounts') as readonly { mountPath: string; readOnly: boolean }[]).filter(
      ({ readOnly }) => readOnly,
    );
    assert.ok(mounts.some(({ mountPath }) => mountPath === settings.dataDir));
  });

  test('a pod has time to leave the endpoints, and to drain', () => {
    const pause = Number(at(container, 'lifecycle', 'preStop', 'exec', 'command', 1)) * 1000;
    assert.ok(pause > 0);
    assert.ok(Number(at(spec, 'terminationGracePeriodSeconds')) * 1000 > pause + settingsOfPod().drainTimeout + GRACE);
  });

  test('probes ask the operations port: readiness /readyz, liveness /livez', () => {
    for (const [probe, path] of [
      ['startupProbe', '/readyz'],
      ['readinessProbe', '/readyz'],
      ['livenessProbe', '/livez'],
    ] as const) {
      assert.deepEqual(at(container, probe, 'httpGet'), { path, port: 'ops' });
    }
  });

  test('the container runs as an unprivileged user and cannot gain privileges', () => {
    assert.equal(at(spec, 'securityContext', 'runAsNonRoot'), true);
    assert.equal(at(spec, 'automountServiceAccountToken'), false);
    assert.deepEqual(at(container, 'securityContext'), {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    assert.match(read('Dockerfile'), new RegExp(`^USER ${at(spec, 'securityContext', 'runAsUser')}:`, 'm'));
  });

  test('the Secret of the tables contains only empty tables', () => {
    assert.deepEqual(at(manifests.get(join('once', 'tables.yaml')), 'stringData'), {
      'production.json': '{"production":[]}\n',
      'identity-providers.json': '[]\n',
    });
  });

  function settingsOfPod(): Settings {
    const rows = at(container, 'env') as readonly { name: string; value?: string }[];
    return parseSettings(Object.fromEntries(rows.map(({ name, value }) => [name, value])), [], { cores: 64 });
  }
});

function withoutTypes(): string | false {
  try {
    createRequire(import.meta.url).resolve('kubernetes-types/package.json');
    return false;
  } catch {
    return 'the package kubernetes-types is not installed';
  }
}

function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce((inner, key) => (inner as Record<string | number, unknown> | undefined)?.[key], value);
}
