// Generates random TypeScript types within the supported subset, as the text of a file that exports them.
import { createRandom } from './values.ts';

export function randomTypes(count: number, seed: number): { source: string; names: string[] } {
  const random = createRandom(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const some = (least: number, most: number): number => least + Math.floor(random() * (most - least + 1));
  const FIELDS = ['a', 'b', 'c', 'kind', "'x-y'", 'toString', 'n'];
  const names: string[] = [];
  const objects: string[] = [];
  const lines = [
    'interface Base { id: string; note?: string }',
    'interface Page<T> { items: T[]; total: number }',
    'type Result<T, E = string> = { ok: true; value: T } | { ok: false; error: E };',
    "const LEVELS = ['low', 'mid', 'high'] as const;",
    'const CONFIG = { host: "x", ports: [80, 443], deep: { on: true } } as const;',
    'interface Tree { value: number; left?: Tree; right?: Tree | null }',
  ];

  const literal = (): string => pick(["'a'", "'b'", "'c'", '1', '2', '-1', 'true', 'false', 'null', '`t`']);
  const fields = (): string[] => [...new Set(Array.from({ length: some(1, 4) }, () => pick(FIELDS)))];

  function object(depth: number): string {
    const members = fields().map(
      (name) => `${random() < 0.15 ? 'readonly ' : ''}${name}${random() < 0.35 ? '?' : ''}: ${type(depth - 1)}`,
    );
    return `{ ${members.join(pick(['; ', ', ']))} }`;
  }

  function known(): string {
    return objects.length === 0 ? 'Base' : pick(objects);
  }

  function type(depth: number): string {
    const simple = [
      literal,
      () => pick(['string', 'number', 'boolean', 'null', 'unknown']),
      () => `${literal()} | ${literal()}`,
    ];
    if (depth <= 0) return pick(simple)();
    return pick([
      ...simple,
      () => object(depth),
      () => object(depth),
      () => `(${type(depth - 1)})[]`,
      () => `Array<${type(depth - 1)}>`,
      () => `[${type(depth - 1)}, (${type(depth - 1)})${random() < 0.3 ? '?' : ''}]`,
      () => `[${type(depth - 1)}, ...(${type(depth - 1)})[]]`,
      () => `(${type(depth - 1)}) | (${type(depth - 1)})`,
      () => `(${object(depth)}) & (${object(depth)})`,
      () => `Record<string, ${type(depth - 1)}>`,
      () => `Record<'x' | 'y', ${type(depth - 1)}>`,
      () => `{ [key: string]: ${type(depth - 1)} }`,
      () => `Partial<${object(depth)}>`,
      () => `Required<${known()}>`,
      () => `Partial<${known()}>`,
      () => `Pick<Base, 'id'>`,
      () => `Omit<Base & ${object(0)}, 'note'>`,
      () => `NonNullable<${type(depth - 1)}>`,
      () => `Page<${type(depth - 1)}>`,
      () => `Result<${type(depth - 1)}>`,
      () => `Result<${type(depth - 1)}, ${type(depth - 1)}>`,
      () => '(typeof LEVELS)[number]',
      () => "(typeof CONFIG)['ports']",
      () => 'typeof CONFIG',
      () => 'keyof Base',
      () => "Base['note']",
      () => "Page<Base>['items'][number]",
      () => 'Tree',
      () => `{ [K in keyof Base]: ${type(depth - 1)} }`,
      () => `{ [K in keyof Base]?: Base[K] }`,
      () => known(),
      () => `{ kind: 'a'; v: ${type(depth - 1)} } | { kind: 'b' | 'c'; w?: ${type(depth - 1)} } | null`,
    ])();
  }

  for (let i = 0; i < count; i++) {
    const name = `R${i}`;
    names.push(name);
    if (random() < 0.3) {
      lines.push(
        `export interface ${name}${random() < 0.4 ? ' extends Base' : ''} ${object(3).replace(/\b(?:note|id)\b\??:/g, 'z:')}`,
      );
      objects.push(name);
    } else lines.push(`export type ${name} = ${type(3)};`);
  }
  return { source: lines.join('\n'), names };
}
