// Puts every mutation of a source file into the file, each behind a switch: `__is(7)` is true while mutation 7 is on. So
// the sources are compiled once for all mutations.
import ts from './support/typescript.mjs';

/**
 * @typedef {object} Mutation
 * @property {number} id
 * @property {string} file
 * @property {string} kind
 * @property {number} start the place in the file
 * @property {number} end
 * @property {string} text the code in place of the old code
 */

/** @type {ReadonlyMap<string, readonly [kind: string, other: string]>} */
const OPERATORS = new Map([
  ['&&', ['negated condition', '||']],
  ['||', ['negated condition', '&&']],
  ['===', ['negated condition', '!==']],
  ['!==', ['negated condition', '===']],
  ['<', ['boundary', '<=']],
  ['<=', ['boundary', '<']],
  ['>', ['boundary', '>=']],
  ['>=', ['boundary', '>']],
]);
/** Without a mutation tool, as in a file that a test copies, no mutation is on. The types of the result do not matter. */
const HEAD = '// @ts-nocheck\nconst __is = globalThis.isMutationOn ?? (() => false);\n';

/**
 * @param {string} file
 * @param {string} text
 * @param {number} firstId the id of the first mutation
 * @returns {{ code: string, mutations: Mutation[] }}
 */
export function addMutations(file, text, firstId) {
  /** @type {Mutation[]} */
  const mutations = [];
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true);
  const code = write(source, (kind, node, replacement) => {
    const id = firstId + mutations.length;
    mutations.push({ id, file, kind, start: node.getStart(), end: node.end, text: replacement });
    return `__is(${id})`;
  });
  return { code: HEAD + code, mutations };
}

/**
 * Returns the code of a node with its mutations.
 *
 * @param {ts.Node} node
 * @param {(kind: string, node: ts.Node, text: string) => string} add adds a mutation, and returns its switch
 * @returns {string}
 */
function write(node, add) {
  if (isWithoutCode(node)) return node.getText();
  const text = node.getSourceFile().text;
  /** @type {Map<ts.Node, string>} */
  const children = new Map();
  ts.forEachChild(node, (child) => void children.set(child, write(child, add)));
  const wrap = (/** @type {ts.Node} */ child, /** @type {(code: string) => string} */ change) =>
    children.set(child, change(/** @type {string} */ (children.get(child))));

  if (ts.isIfStatement(node) || ts.isConditionalExpression(node)) {
    const condition = ts.isIfStatement(node) ? node.expression : node.condition;
    const isOn = add('negated condition', condition, `!(${condition.getText()})`);
    wrap(condition, (code) => `(${isOn} !== !!(${code}))`);
  }
  if (ts.isConditionalExpression(node)) {
    const isOn = add('swapped branch', node.whenTrue, node.whenFalse.getText());
    wrap(node.whenTrue, (code) => `(${isOn} ? (${node.whenFalse.getText()}) : (${code}))`);
  }
  if (ts.isIfStatement(node) && node.elseStatement !== undefined) {
    // Without braces, an `if` would take the `else` that follows.
    const other = `{ ${node.elseStatement.getText()} }`;
    const isOn = add('swapped branch', node.thenStatement, other);
    wrap(node.thenStatement, (code) => `{ if (${isOn}) ${other} else { ${code} } }`);
  }

  let code = '';
  let at = node.getStart();
  for (const [child, written] of children) {
    code += text.slice(at, child.getStart()) + written;
    at = child.end;
  }
  code += text.slice(at, node.end);

  if (ts.isBinaryExpression(node)) {
    const { left, operatorToken, right } = node;
    const [kind, other] = OPERATORS.get(operatorToken.getText()) ?? [];
    if (kind !== undefined && other !== undefined)
      code = `(${add(kind, operatorToken, other)} ? (${left.getText()}) ${other} (${right.getText()}) : (${code}))`;
  }
  if (isRemovable(node)) code = `{ if (!${add('removed statement', node, ';')}) { ${code} } }`;
  if (isName(node)) return code;
  if (ts.isNumericLiteral(node)) code = `(${add('changed constant', node, `(${code} + 1)`)} ? ${code} + 1 : ${code})`;
  if (node.kind === ts.SyntaxKind.TrueKeyword) code = `(!${add('changed constant', node, 'false')})`;
  if (node.kind === ts.SyntaxKind.FalseKeyword) code = add('changed constant', node, 'true');
  if (isFullText(node)) code = `(${add('emptied string', node, "''")} ? '' : ${code})`;
  return code;
}

/** @param {ts.Node} node */
function isWithoutCode(node) {
  return (
    ts.isTypeNode(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isImportDeclaration(node) ||
    ts.isExportDeclaration(node)
  );
}

/** @param {ts.Node} node */
function isRemovable(node) {
  if (ts.isReturnStatement(node)) return node.expression === undefined;
  return ts.isExpressionStatement(node) || ts.isThrowStatement(node) || ts.isContinueStatement(node);
}

/** Says whether the node is the name of a property. @param {ts.Node} node */
function isName(node) {
  const { name, propertyName } = Object(node.parent);
  return name === node || propertyName === node;
}

/** @param {ts.Node} node */
function isFullText(node) {
  const isText = ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateExpression(node);
  return isText && node.getText().length > 2 && !ts.isTaggedTemplateExpression(node.parent);
}
