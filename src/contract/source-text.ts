// A file as text, and what is found in it without the parser: its tokens and its functions.
import { functionsIn, type SourceFunction } from './functions.ts';
import { SourceError } from './source-error.ts';
import { Kind, type Tokens, tokenize } from './tokens.ts';

/** A file; what is found in it is worked out when it is asked for. */
export interface SourceText {
  readonly path: string;
  readonly source: string;
  /** Plain JavaScript, whose types are in comments. */
  readonly isScript: boolean;
  /** It, with annotations that say nothing as blanks. */
  readonly plain: string;
  /** @throws SourceError */
  readonly tokens: Tokens;
  /** @throws SourceError */
  readonly functions: readonly SourceFunction[];
  /** They again, by the index of the token that each begins with. @throws SourceError */
  readonly starts: ReadonlyMap<number, SourceFunction>;
  /** Indexes of the tokens that are a word or text: a name, a string. @throws SourceError */
  readonly places: ReadonlyMap<string, readonly number[]>;
  /** Of each token the index of the bracket that it stands in; -1: in none. @throws SourceError */
  readonly around: Int32Array;
}

export function sourceText(path: string, source: string, known?: Tokens): SourceText {
  const isScript = !path.endsWith('.ts');
  let tokens = known;
  let functions: readonly SourceFunction[] | undefined;
  let plain: string | undefined;
  let starts: SourceText['starts'] | undefined;
  let places: SourceText['places'] | undefined;
  let around: Int32Array | undefined;
  return {
    path,
    source,
    isScript,
    get plain() {
      plain ??= isScript ? source : source.replace(untypedIn(source), (annotation) => ' '.repeat(annotation.length));
      return plain;
    },
    get tokens() {
      tokens ??= tokenize(source);
      return tokens;
    },
    get functions() {
      functions ??= functionsIn(this.tokens, isScript);
      return functions;
    },
    get starts() {
      starts ??= new Map(this.functions.map((one) => [one.form === 'signature' ? -1 : one.from, one]));
      return starts;
    },
    get places() {
      places ??= placesIn(this.tokens);
      return places;
    },
    get around() {
      around ??= bracketsAround(this.tokens);
      return around;
    },
  };
}

function placesIn({ list }: Tokens): SourceText['places'] {
  const places = new Map<string, number[]>();
  for (const [i, { kind, value }] of list.entries()) {
    if (kind === Kind.punctuation || kind === Kind.regex) continue;
    const known = places.get(value);
    if (known === undefined) places.set(value, [i]);
    else known.push(i);
  }
  return places;
}

function bracketsAround({ list, partner }: Tokens): Int32Array {
  const open = [-1];
  const around = new Int32Array(list.length);
  for (let i = 0; i < list.length; i++) {
    if (partner[open.at(-1) as number] === i) open.pop();
    around[i] = open.at(-1) as number;
    if ((partner[i] as number) >= 0) open.push(i);
  }
  return around;
}

/** Whether its tokens can be told; of the controller's own file the parser says what is wrong with it. */
export function isFollowed(file: SourceText): boolean {
  try {
    return file.functions.length >= 0;
  } catch (error) {
    if (error instanceof SourceError) return false;
    throw error;
  }
}

/** Whether a text stands there to the character, but for blanks where Node has taken types away. */
export function standsAt(text: string, { source }: Pick<SourceText, 'source'>, at: number): boolean {
  for (let i = 0; i < text.length; i++) if (text[i] !== source[at + i] && text[i] !== ' ') return false;
  return at >= 0;
}

/** Whether something in it has that name. */
export function mentions({ source }: SourceText, name: string): boolean {
  return source.includes('\\u') || new RegExp(`(?<![\\w$])['"]?${name.replace(/[^\w ]/g, '\\$&')}['"]?\\s*[\\](<:=]`).test(source);
}

/** Annotations that say nothing: `unknown`, `any`, and the params of `gatefold` where that is what their name stands for. */
function untypedIn(source: string): RegExp {
  const names = ['ControllerParams', 'Params'].filter((name) => {
    const sources = Array.from(source.matchAll(new RegExp(`\\b${name}\\b[^;'"]*?\\bfrom\\s*['"]([^'"]*)`, 'g')), ([, from]) => from);
    const isOther = new RegExp(`\\b(?:as|type|interface|class|namespace)\\s+${name}\\b(?!\\s*[,}])|\\bas\\s+${name}\\b`).test(source);
    return !isOther && sources.length > 0 && sources.every((from) => from === 'gatefold');
  });
  return new RegExp(`\\??\\s*:\\s*(?:${['unknown', 'any', ...names].join('|')})(?=\\s*[,)])`, 'g');
}
