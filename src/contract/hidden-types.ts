// Whether an operation has types that the parser did not find, or found in another function than the one that runs: it is put
// there, wrapped, bound or made by code. Then its file is refused, for an operation with types never runs without a check.
import type { FoundMethod, Level } from './class-levels.ts';
import { DOC_TYPE, endOfValue, isName, isSign, readsLike, runTimeFunction, type SourceFunction } from './functions.ts';
import { isFollowed, mentions, type SourceText, sourceText, standsAt } from './source-text.ts';
import type { ParsedModule } from './syntax.ts';
import { Kind } from './tokens.ts';

/** Where such types stand. */
export interface HiddenTypes {
  readonly file: SourceText;
  readonly at: number;
}

export interface Asked {
  readonly name: string;
  readonly method: (...args: never[]) => unknown;
  /** What the parser found. */
  readonly found: FoundMethod | undefined;
  readonly levels: readonly Level[];
  /** The files that the controller is made of, its own first. */
  readonly sight: () => readonly SourceText[];
}

export function hiddenTypes({ name, method, found, levels, sight }: Asked): HiddenTypes | undefined {
  if (found !== undefined && standsThere(method, found)) return undefined;
  const running = runTimeFunction(method);
  if (running?.takesNothing) return undefined;
  const home = found === undefined ? undefined : homeOf(found);
  const read = home?.functions.find(({ at }) => at === found?.open);
  const runs = (one: SourceFunction, { tokens }: SourceText) => running !== undefined && readsLike(running, one, tokens);
  const isKnown = ({ at }: SourceFunction, { path }: SourceText) =>
    (path === found?.scope.path && at === found.open) || overridden(name, levels).some((one) => one.path === path && one.at === at);
  const twinIn = (file: SourceText): HiddenTypes[] =>
    file.functions.filter((one) => one.isTyped && !isKnown(one, file) && runs(one, file)).map(({ at }) => ({ file, at }));
  const isRead = home !== undefined && read !== undefined && runs(read, home);
  if (isRead && read.isTyped) return undefined;
  const files = sight()
    .filter((file) => !isRead || mentions(file, name))
    .filter(isFollowed);
  const [twin] = files.flatMap(twinIn);
  // Of a wrapper around a method the types of that method stand.
  if (twin !== undefined || isRead || read?.isTyped) return twin;
  const isHere = !running?.takesAll && files.some((file) => file.functions.some((one) => one.names.includes(name) && runs(one, file)));
  return isHere ? undefined : typedPart(name, files);
}

/** To the character, which most do; a script has its types in comments, so there two may be the same. */
function standsThere(method: Asked['method'], { scope: { path, module }, open = -1 }: FoundMethod): boolean {
  const text = Function.prototype.toString.call(method);
  return path.endsWith('.ts') && text.includes('(') && standsAt(text, module, open - text.indexOf('('));
}

/** Methods of its name in ancestors. */
function overridden(name: string, levels: readonly Level[]): { path: string; at: number | undefined }[] {
  const nearest = levels.findIndex(({ members }) => members.some((member) => member.name === name));
  return levels
    .slice(nearest + 1)
    .flatMap(({ scope: { path }, members }) => members.filter((member) => member.name === name).map(({ open: at }) => ({ path, at })));
}

const homes = new WeakMap<FoundMethod['scope']['module'], SourceText>();

function homeOf({ scope: { path, module } }: FoundMethod): SourceText {
  const home = homes.get(module) ?? sourceText(path, module.source, (module as ParsedModule).tokens);
  homes.set(module, home);
  return home;
}

// What a name is made of

interface Part {
  readonly word: string;
  /** `wrap` in `wrap(create)`: what it takes is no request, what it makes may be. */
  readonly isCalled: boolean;
}

type Range = readonly [from: number, to: number];

/** A function with types among those that the value of a name is made of: `created: wrap(create)`, `{ make as created }`. */
function typedPart(name: string, files: readonly SourceText[]): HiddenTypes | undefined {
  const parts: Part[] = [{ word: name, isCalled: false }];
  const seen = new Set<string>();
  for (const part of parts) {
    const key = `${part.isCalled} ${part.word}`;
    if (seen.has(key)) continue;
    seen.add(key);
    const isOperation = part.word === name;
    for (const [i, file] of files.entries()) {
      // The default of another file is what a name may stand for, the controller's own is all of it.
      if (part.word === 'default' && !isOperation && i === 0) continue;
      const made = isOperation ? [...computedValues(file), ...(i === 0 ? exportedCall(file) : [])] : [];
      for (const range of [...valuesOf(part, file), ...made]) {
        const { typed, within } = partsIn(file, range, part.isCalled);
        if (typed !== undefined) return { file, at: typed.at };
        parts.push(...within);
      }
      if (isDefault(part, file)) parts.push({ word: 'default', isCalled: part.isCalled });
      const documented = part.isCalled || !file.isScript ? undefined : file.places.get(part.word)?.find((at) => hasDocType(file, at));
      if (documented !== undefined) return { file, at: file.tokens.list[documented]?.at ?? 0 };
    }
  }
  return undefined;
}

/** What stands in a value: a function with types, or names outside of functions. What is called is looked into for functions. */
function partsIn({ tokens: { list }, starts }: SourceText, [from, to]: Range, isCalled: boolean) {
  const within: Part[] = [];
  let outside = isCalled && isSign(list[from], '{') ? to : from;
  for (let i = from; i < to; i++) {
    const made = starts.get(i);
    if (made?.isTyped) return { typed: made, within };
    if (made !== undefined) {
      outside = Math.max(outside, made.end);
      i = (isCalled ? made.body : made.end) - 1;
    } else if (i >= outside && (isName(list[i]) || list[i]?.kind === Kind.string))
      within.push({ word: list[i]?.value as string, isCalled: isSign(list[i + 1], '(') });
  }
  return { typed: undefined, within };
}

/** Where a name is given a value. */
function valuesOf({ word, isCalled }: Part, { tokens, functions, places, around }: SourceText): Range[] {
  const { list, partner } = tokens;
  const own = functions.filter(({ names }) => names.includes(word));
  const found = own.map(({ from, body, end }): Range => [isCalled ? body : from, end]);
  for (const i of places.get(word) ?? []) {
    if (list[i - 1]?.text === 'type') continue;
    let next = i + 1;
    while (isSign(list[next], ']') || isSign(list[next], '?') || isSign(list[next], '!')) next++;
    const open = around[i] as number;
    const close = partner[open] ?? -1;
    if (word === 'default' && list[i - 1]?.text === 'export') found.push([i + 1, endOfValue(tokens, i + 1)]);
    // A function that is called is among its own functions, without what it takes.
    else if (isValueBehind(list, next)) found.push(...(isCalled && own.length > 0 ? [] : [valueBehind(tokens, next)]));
    // `on('created', create)`, `{ run: create, name: 'created' }`
    else if (list[i]?.kind === Kind.string && open >= 0 && /^[[,(:]$/.test(list[i - 1]?.text ?? '')) found.push([open + 1, close]);
    // `{ make as created }`, `const { make: created } = …`
    else if (list[i - 1]?.text === 'as' || (isSign(list[i - 1], ':') && isName(list[i - 2]))) found.push([i - 2, i - 1]);
    const isPattern = open >= 0 && !isSign(list[close], ')') && isSign(list[close + 1], '=') && isValueBehind(list, close + 1);
    if (isPattern) found.push(valueBehind(tokens, close + 1));
  }
  return found;
}

const valueBehind = (tokens: SourceText['tokens'], sign: number): Range => [sign + 1, endOfValue(tokens, sign + 1)];

/** `export default build((data: User) => …)`, where the group is none of the file's own classes and objects. */
function exportedCall({ tokens }: SourceText): Range[] {
  const { list } = tokens;
  const from = list.findIndex(({ text }, i) => text === 'default' && list[i - 1]?.text === 'export') + 1;
  const isOwn = /^(?:class|abstract|\{|function|async|interface|@)$/.test(list[from]?.text ?? '');
  return from === 0 || isOwn ? [] : [[from, endOfValue(tokens, from)]];
}

/** `[key]: …`, `operations[key] = …` may be the operation's. */
function computedValues({ tokens }: SourceText): Range[] {
  const { list } = tokens;
  return list.flatMap((token, i): Range[] => (isSign(token, ']') && isValueBehind(list, i + 1) ? [valueBehind(tokens, i + 1)] : []));
}

function isValueBehind(list: SourceText['tokens']['list'], at: number): boolean {
  return isSign(list[at], ':') || (isSign(list[at], '=') && !isSign(list[at + 1], '='));
}

/** `import created from './created.ts'` */
const isDefault = ({ word }: Part, { places, tokens: { list } }: SourceText): boolean =>
  places.get(word)?.some((i) => list[i - 1]?.text === 'import') === true;

/** In the comment before the statement that it stands in. */
function hasDocType({ tokens: { list } }: SourceText, at: number): boolean {
  for (let i = at; isName(list[i]) || isSign(list[i], '.') || list[i]?.kind === Kind.string; i--) {
    if (DOC_TYPE.test(list[i]?.doc ?? '')) return true;
  }
  return false;
}
