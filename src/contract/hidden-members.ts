// Which methods are marked `private` or `protected`. Types are gone at run time, so the source is the only place where that wish
// of the author can be seen. Wherever the source is not understood, the safe side is taken: a marked name is hidden everywhere.
import type { Level } from './class-levels.ts';
import { readConstant } from './look-up.ts';
import { type HiddenNames, MARK } from './marks.ts';
import { SourceError } from './source-error.ts';
import type { Member, ParsedModule } from './syntax.ts';
import { Kind, type Tokens } from './tokens.ts';

/** What a file says, in short: it is kept for every file, the parsed file is not. */
export interface FileMarks {
  /** Class name → names marked in a class of that name that was understood. */
  readonly byClass: ReadonlyMap<string, ReadonlySet<string>>;
  /** Names behind marks that stand in no class that was understood. */
  readonly stray: ReadonlySet<string>;
}

const isMark = (word: string): boolean => word === 'private' || word === 'protected';
const MODIFIERS = new Set(['public', 'static', 'async', 'override', 'abstract', 'readonly', 'declare', 'accessor', 'get', 'set', '*']);

/** @throws SourceError on a mark before a computed name that cannot be told */
export function marksOf(module: ParsedModule): FileMarks {
  const byClass = new Map<string, Set<string>>();
  for (const declarations of module.declarations.values()) {
    for (const { kind, className, members } of declarations) {
      if (kind !== 'class') continue;
      const names = byClass.get(className) ?? new Set();
      byClass.set(className, names);
      for (const { kind: what, name, modifiers } of members)
        if (what !== 'property' && modifiers.some(isMark) && name !== '') names.add(name);
    }
  }
  return { byClass, stray: strayMarks(module) };
}

/** Of a file whose syntax is not followed: every name behind the word. */
export function everyMarkedName(source: string): FileMarks {
  const stray = new Set<string>();
  for (const [, name] of source.matchAll(/\b(?:private|protected)\b[^;{}=()]*?\[?\s*['"]?([\w$\u0080-\uffff]+)['"]?\s*\]?\s*\??\s*[(<]/g))
    stray.add(name as string);
  return { byClass: new Map(), stray };
}

/** What a level of a class that was understood hides. */
export function hiddenIn({ members, scope }: Level): HiddenNames {
  const hidden = new Set<string>();
  const open = new Set<string>();
  let hidesOthers = false;
  for (const member of members) {
    if (!member.modifiers.some(isMark)) open.add(member.name);
    else if (member.name !== '') hidden.add(member.name);
    else if (isComputed(member)) hidesOthers = true;
  }
  const module = scope.module as ParsedModule;
  for (const name of strayMarks(module)) hidden.add(name);
  return { has: (name) => hidden.has(name) || (hidesOthers && !open.has(name)) };
}

const isComputed = ({ kind, name }: Member): boolean => kind === 'other' || (kind === 'method' && name === '');

function strayMarks(module: ParsedModule): Set<string> {
  const names = new Set<string>();
  const { list } = module.tokens;
  list.forEach((token, i) => {
    if (token.kind === Kind.regex && MARK.test(token.text)) for (const name of everyMarkedName(token.text).stray) names.add(name);
    if (token.kind !== Kind.name || !isMark(token.value) || module.marks.has(i) || list[i - 1]?.text === '.') return;
    const name = memberAfter(module.tokens, i + 1, module);
    if (name !== undefined) names.add(name);
  });
  return names;
}

/** The name of a method behind a mark: modifiers may stand between, and `(` or `<` follows (a field has neither). */
function memberAfter({ list, partner }: Tokens, from: number, module: ParsedModule): string | undefined {
  const isCall = (i: number) => /^[(<]$/.test(list[i]?.text ?? '') || (list[i]?.text === '?' && /^[(<]$/.test(list[i + 1]?.text ?? ''));
  let i = from;
  while (MODIFIERS.has(list[i]?.text ?? '') && !isCall(i + 1)) i++;
  const token = list[i];
  if (token === undefined) return undefined;
  if (token.text !== '[' || token.kind !== Kind.punctuation) {
    const isName = token.kind === Kind.name || token.kind === Kind.string;
    return isName && isCall(i + 1) ? token.value : undefined;
  }
  const end = partner[i] as number;
  if (!isCall(end + 1)) return undefined;
  const inner = list[i + 1];
  if (inner?.kind === Kind.string && end === i + 2) return inner.value;
  // A symbol is never an operation.
  if (inner?.value === 'Symbol') return undefined;
  const [constant] = end === i + 2 ? (module.declarations.get(inner?.value ?? '') ?? []) : [];
  const start = constant?.value?.[0];
  if (start !== undefined && /^Symbol\b/.test(module.source.slice(start, start + 10))) return undefined;
  const shape = constant === undefined ? undefined : readConstant(constant, module);
  if (shape?.kind === 'const' && typeof shape.value === 'string') return shape.value;
  throw new SourceError('the name of this private or protected method cannot be told: write it plainly', token.at);
}
