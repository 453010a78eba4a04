// Writes the declarations of a file in one text form from two parsers: ours and TypeScript's. Equal texts mean that
// both read the same.

import { parseModule } from '../../../src/contract/source/parse-module.ts';
import type { Member, Param, TypeNode } from '../../../src/contract/source/syntax.ts';
import ts from '../../support/typescript.mjs';

const K = ts.SyntaxKind;

/** Key of a declaration → its texts, one for each declaration of that name. */
export type Outline = ReadonlyMap<string, readonly string[]>;

/** The outline from TypeScript's parser; undefined when TypeScript reports a syntax error. */
export function outlineOfTypeScript(path: string, source: string): Outline | undefined {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true);
  if ((file as unknown as { parseDiagnostics: unknown[] }).parseDiagnostics.length > 0) return undefined;
  const found = new Map<string, string[]>();
  const add = (key: string, text: string) => found.set(key, [...(found.get(key) ?? []), text]);
  for (const s of file.statements) {
    if (ts.isImportDeclaration(s) && s.importClause !== undefined) {
      const from = (s.moduleSpecifier as ts.StringLiteral).text;
      const { name, namedBindings } = s.importClause;
      if (name !== undefined) add(`import ${name.text}`, `${from} default`);
      if (namedBindings === undefined) continue;
      if (ts.isNamespaceImport(namedBindings)) add(`import ${namedBindings.name.text}`, `${from} *`);
      else
        for (const e of namedBindings.elements)
          add(`import ${e.name.text}`, `${from} ${(e.propertyName ?? e.name).text}`);
    } else if (ts.isImportEqualsDeclaration(s)) add(`import ${s.name.text}`, 'import = *');
    else if (ts.isInterfaceDeclaration(s) || ts.isClassDeclaration(s)) {
      const parents = (s.heritageClauses ?? [])
        .filter((h) => h.token === K.ExtendsKeyword)
        .flatMap((h) => h.types.map(theirType));
      const members = [...s.members].filter((m) => !ts.isSemicolonClassElement(m)).map(theirMember);
      const kind = ts.isClassDeclaration(s) ? 'class' : 'interface';
      add(
        `${kind} ${s.name?.text ?? 'default'}`,
        `${theirParams(s.typeParameters)} ${parents.join()} {${members.join('\n')}}`,
      );
    } else if (ts.isTypeAliasDeclaration(s))
      add(`alias ${s.name.text}`, `${theirParams(s.typeParameters)} ${theirType(s.type)}`);
    else if (ts.isEnumDeclaration(s)) add(`enum ${s.name.text}`, '');
    else if (ts.isFunctionDeclaration(s)) {
      add(
        `function ${s.name?.text ?? 'default'}`,
        `(${s.parameters.map(theirParam).join(', ')}): ${theirType(s.type)}`,
      );
    }
  }
  return found;
}

/** @throws SourceError */
export function outlineOfOurs(source: string): Outline {
  const found = new Map<string, string[]>();
  const add = (key: string, text: string) => found.set(key, [...(found.get(key) ?? []), text]);
  const module = parseModule(source);
  for (const [local, { from, name }] of module.imports) add(`import ${local}`, `${from} ${name}`);
  for (const [name, declarations] of module.declarations) {
    for (const d of declarations) {
      const params = `<${d.typeParams.map((p) => `${p.name}=${ourType(p.fallback)}`)}>`;
      if (d.kind === 'interface' || d.kind === 'class') {
        add(`${d.kind} ${name}`, `${params} ${d.parents.map(ourType).join()} {${d.members.map(ourMember).join('\n')}}`);
      } else if (d.kind === 'alias') add(`alias ${name}`, `${params} ${ourType(d.type)}`);
      else if (d.kind === 'enum') add(`enum ${name}`, '');
      else if (d.kind === 'function') {
        add(
          `function ${name}`,
          `(${d.value?.kind === 'function' ? d.value.params.map(ourParam).join(', ') : ''}): ${ourType(d.value?.kind === 'function' ? d.value.result : undefined)}`,
        );
      }
    }
  }
  return found;
}

/**
 * Writes `key: ours != theirs` for each difference. Classes that are values are skipped, because TypeScript has them as
 * expressions.
 */
export function differences(ours: Outline, theirs: Outline): { compared: number; different: string[] } {
  const different: string[] = [];
  let compared = 0;
  for (const key of new Set([...ours.keys(), ...theirs.keys()])) {
    if (key.startsWith('class ') && !theirs.has(key)) continue;
    compared++;
    const [a, b] = [JSON.stringify(ours.get(key)), JSON.stringify(theirs.get(key))];
    if (a === b) continue;
    let i = 0;
    while (a?.[i] !== undefined && a[i] === b?.[i]) i++;
    different.push(`${key}: ${a?.slice(Math.max(0, i - 40), i + 80)} != ${b?.slice(Math.max(0, i - 40), i + 80)}`);
  }
  return { compared, different };
}

// The outline from TypeScript's parser

const dotted = (n: ts.Node): string => n.getText().replace(/\s|\/\*.*?\*\//g, '');
const args = (list: ts.NodeArray<ts.TypeNode> | undefined): string =>
  list ? `<${list.map(theirType).join(' ')}>` : '';
const theirParams = (list: ts.NodeArray<ts.TypeParameterDeclaration> | undefined): string =>
  `<${(list ?? []).map((p) => `${p.name.text}=${theirType(p.default)}`)}>`;

function theirType(n: ts.TypeNode | ts.Node | undefined): string {
  if (n === undefined) return '_';
  if (ts.isParenthesizedTypeNode(n)) return theirType(n.type);
  if (ts.isArrayTypeNode(n)) return `(array ${theirType(n.elementType)})`;
  if (ts.isTupleTypeNode(n)) return `(tuple ${n.elements.map(theirItem).join(' ')})`;
  if (ts.isUnionTypeNode(n)) return `(union ${n.types.map(theirType).join(' ')})`;
  if (ts.isIntersectionTypeNode(n)) return `(intersection ${n.types.map(theirType).join(' ')})`;
  if (ts.isTypeLiteralNode(n)) return `(object ${n.members.map(theirMember).join(' ')})`;
  if (ts.isTypeReferenceNode(n)) return `(name ${dotted(n.typeName)}${args(n.typeArguments)})`;
  if (ts.isImportTypeNode(n)) return '?';
  if (ts.isTypeOperatorNode(n)) {
    return n.operator === K.UniqueKeyword
      ? '?'
      : `(${n.operator === K.KeyOfKeyword ? 'keyof' : 'readonly'} ${theirType(n.type)})`;
  }
  if (ts.isIndexedAccessTypeNode(n)) return `(at ${theirType(n.objectType)} ${theirType(n.indexType)})`;
  if (ts.isTypeQueryNode(n))
    return n.exprName.kind === (K.ImportType as number) ? '?' : `(typeof ${dotted(n.exprName)})`;
  if (ts.isLiteralTypeNode(n)) return theirLiteral(n.literal);
  if (ts.isTemplateLiteralTypeNode(n)) {
    const texts = [n.head.text, ...n.templateSpans.map((s) => s.literal.text)];
    return `(template ${JSON.stringify(texts)} ${n.templateSpans.map((s) => theirType(s.type)).join(' ')})`;
  }
  if (ts.isMappedTypeNode(n)) return theirMapped(n);
  if (ts.isTypePredicateNode(n)) return n.assertsModifier ? 'void' : 'boolean';
  if (ts.isExpressionWithTypeArguments(n)) {
    const isName = ts.isIdentifier(n.expression) || ts.isPropertyAccessExpression(n.expression);
    return isName ? `(name ${dotted(n.expression)}${args(n.typeArguments)})` : '?';
  }
  const text = n.getText().trim();
  return /^(?:string|number|boolean|undefined|unknown|any|never|object|void|bigint|symbol|null)$/.test(text)
    ? text
    : '?';
}

function theirItem(e: ts.TypeNode): string {
  if (ts.isNamedTupleMember(e))
    return `${e.dotDotDotToken ? '...' : ''}${theirType(e.type)}${e.questionToken ? '?' : ''}`;
  if (ts.isRestTypeNode(e)) return `...${theirType(e.type)}`;
  return ts.isOptionalTypeNode(e) ? `${theirType(e.type)}?` : theirType(e);
}

function theirLiteral(l: ts.LiteralTypeNode['literal']): string {
  if (l.kind === K.NullKeyword) return '(literal null)';
  if (l.kind === K.TrueKeyword || l.kind === K.FalseKeyword) return `(literal ${l.kind === K.TrueKeyword})`;
  if (ts.isNoSubstitutionTemplateLiteral(l)) return `(template ${JSON.stringify([l.text])} )`;
  if (ts.isStringLiteral(l)) return `(literal ${JSON.stringify(l.text)})`;
  const text = l.getText().replace(/_|\s/g, '');
  return text.endsWith('n') ? '?' : `(literal ${JSON.stringify(Number(text))})`;
}

function theirMapped(n: ts.MappedTypeNode): string {
  if (n.nameType !== undefined) return '?';
  const sign =
    n.questionToken === undefined
      ? ''
      : ({ [K.MinusToken]: '-?', [K.PlusToken]: '+?' }[n.questionToken.kind as number] ?? '?');
  return `(mapped ${n.typeParameter.name.text} ${theirType(n.typeParameter.constraint)} ${n.type ? theirType(n.type) : 'any'} ${sign})`;
}

function theirName(n: ts.PropertyName): string | undefined {
  if (ts.isComputedPropertyName(n)) return ts.isStringLiteralLike(n.expression) ? n.expression.text : undefined;
  return ts.isNumericLiteral(n) ? String(Number(n.text.replace(/_/g, ''))) : (n as ts.Identifier).text;
}

function theirParam(p: ts.ParameterDeclaration): string {
  const name = ts.isIdentifier(p.name) ? p.name.text : '';
  return `${p.dotDotDotToken ? '...' : ''}${name}${p.questionToken || p.initializer ? '?' : ''}:${theirType(p.type)}`;
}

function theirMember(m: ts.ClassElement | ts.TypeElement): string {
  const modifiers = (((m as ts.PropertyDeclaration).modifiers ?? []) as readonly ts.ModifierLike[])
    .filter((x) => !ts.isDecorator(x))
    .map((x) => x.getText());
  if (m.name !== undefined && ts.isPrivateIdentifier(m.name)) modifiers.push('#');
  const mods = modifiers.join(' ') + ((m as ts.MethodDeclaration).asteriskToken ? '*' : '');
  if (ts.isPropertySignature(m) || ts.isPropertyDeclaration(m)) {
    const name = theirName(m.name);
    const isDecorated = ts.isPropertyDeclaration(m) && ts.getDecorators(m) !== undefined;
    return name === undefined
      ? 'other'
      : `[${mods} ${name}${m.questionToken ? '?' : ''}: ${isDecorated ? '?' : theirType(m.type)}]`;
  }
  if (ts.isMethodSignature(m) || ts.isMethodDeclaration(m)) {
    const name = theirName(m.name) ?? '';
    return `[${mods} ${name}${m.questionToken ? '?' : ''}(${m.parameters.map(theirParam).join(', ')}): ${theirType(m.type)}]`;
  }
  if (ts.isConstructorDeclaration(m))
    return `[${mods} constructor(${m.parameters.map(theirParam).join(', ')}): ${theirType(m.type)}]`;
  if (ts.isIndexSignatureDeclaration(m))
    return `[${mods} index ${theirType(m.parameters[0]?.type)}: ${theirType(m.type)}]`;
  return 'other';
}

// The outline from our parser

const ourParam = (p: Param): string => `${p.isRest ? '...' : ''}${p.name}${p.isOptional ? '?' : ''}:${ourType(p.type)}`;

function ourMember(m: Member): string {
  const mods = m.modifiers.filter((word) => word !== '*').join(' ') + (m.modifiers.includes('*') ? '*' : '');
  if (m.kind === 'property' && m.computed === undefined)
    return `[${mods} ${m.name}${m.isOptional ? '?' : ''}: ${ourType(m.type)}]`;
  if (m.kind === 'method')
    return `[${mods} ${m.name}${m.isOptional ? '?' : ''}(${m.params.map(ourParam).join(', ')}): ${ourType(m.type)}]`;
  if (m.kind === 'index') return `[${mods} index ${ourType(m.params[0]?.type)}: ${ourType(m.type)}]`;
  return 'other';
}

function ourType(n: TypeNode | undefined): string {
  if (n === undefined) return '_';
  switch (n.kind) {
    case 'word':
      return n.name;
    case 'array':
      return `(array ${ourType(n.element)})`;
    case 'keyof':
    case 'readonly':
      return `(${n.kind} ${ourType(n.operand)})`;
    case 'tuple':
      return `(tuple ${n.items.map((e) => (e.isRest ? '...' : '') + ourType(e.type) + (e.isOptional ? '?' : '')).join(' ')})`;
    case 'union':
    case 'intersection':
      return `(${n.kind} ${n.parts.map(ourType).join(' ')})`;
    case 'object':
      return `(object ${n.members.map(ourMember).join(' ')})`;
    case 'name':
      return `(name ${n.name}${n.args.length ? `<${n.args.map(ourType).join(' ')}>` : ''})`;
    case 'indexed':
      return `(at ${ourType(n.object)} ${ourType(n.key)})`;
    case 'typeof':
      return `(typeof ${n.name})`;
    case 'literal':
      return `(literal ${JSON.stringify(n.value)})`;
    case 'template':
      return `(template ${JSON.stringify(n.texts)} ${n.types.map(ourType).join(' ')})`;
    case 'mapped':
      return `(mapped ${n.param} ${ourType(n.keys)} ${ourType(n.value)} ${n.optionalSign})`;
    case 'unsupported':
    case 'mistake':
      return '?';
  }
}
