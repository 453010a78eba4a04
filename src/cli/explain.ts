// `gatefold explain VERB PATH` reports the route, the group and the operation that would answer a request, or why no
// operation does. ask-app.ts gets the verdict from the server's own code. This file describes the verdict.
import { METHODS } from '../base/builtins.ts';
import { alignColumns, type Ink, plain, shortPlace } from '../base/ink.ts';
import { groupNameOf, urlNameOf } from '../base/page-name.ts';
import { splitRouteName, VERB_OPERATIONS } from '../base/route-name.ts';
import { findLookAlikes } from '../groups/look-alikes.ts';
import type { Route } from '../http/routes.ts';
import type { Question, Verdict } from './ask-app.ts';
import { type Answer, type Command, type CommandCall, UsageError } from './command.ts';
import { type Inspection, inspectFolder, type LoadedGroup } from './inspection.ts';
import { brokenPlace, contractText, routesOf } from './routes.ts';

export const command: Command = {
  name: 'explain',
  usage: 'VERB PATH [--authorization foreign|ID|VALUE] [--user ID] [--origin URL] [--data JSON]',
  about: 'Report which route, group and operation would answer a request, or why none does; nothing is called',
  flags: {
    'authorization WHAT':
      'Assume an Authorization header: foreign, one that matches no credential; the id of a credential;\n' +
      'or the value of the header, such as "Token abc", but no token of Gatefold',
    'user ID': 'Assume that authenticate of the service file has found a user with this id',
    'origin URL': 'Assume a page of this origin',
    'data JSON': 'Assume this body, and report what is wrong with it',
  },
  operands: ['VERB', 'PATH'],
  run,
};

async function run(call: CommandCall): Promise<Answer> {
  const { settings, io, ink } = call;
  const question = parseQuestion(call);
  const inspection = await inspectFolder(settings, io, { question });
  const verdict = inspection.verdict as Verdict;
  return describeVerdict({ question, verdict, inspection, dir: settings.controllersDir, cwd: io.cwd }, ink);
}

function parseQuestion({ operands: [verb = '', target = ''], flagValues, now }: CommandCall): Question {
  const { authorization, user, origin, data } = flagValues;
  const method = verb.toUpperCase();
  if (!METHODS.includes(method)) throw new UsageError(`${JSON.stringify(verb)} is not an HTTP method`);
  // Each of these characters would end the target in a request line.
  if (target === '' || /[\0-\x20\x7f]/.test(target))
    throw new UsageError('PATH: it is empty, or has a space or a control character');
  if (authorization !== undefined && /^(?:gf[ks]_|bearer )/i.test(authorization))
    throw new UsageError(
      '--authorization: the value is a token; give its credential id, or foreign if it has none, so that the token stays secret',
    );
  if (authorization?.trim() === '') throw new UsageError('--authorization: the value is missing');
  if (authorization !== undefined && /[\0-\x1f\x7f]/.test(authorization))
    throw new UsageError('--authorization: it has a control character');
  if (origin !== undefined && /[^\x21-\x7e]/.test(origin))
    throw new UsageError('--origin: it has a space or is not ASCII');
  if (user === '') throw new UsageError('--user: the id is missing');
  return { verb: method, target, now, authorization: authorization?.trim(), user, origin, data };
}

export interface ExplainedRequest {
  readonly question: Question;
  readonly verdict: Verdict;
  readonly inspection: Pick<Inspection, 'groups' | 'providers' | 'service'>;
  /** The controllers folder. */
  readonly dir: string;
  readonly cwd: string;
}

export function describeVerdict(explained: ExplainedRequest, ink: Ink): Answer {
  const { question, verdict, inspection, cwd } = explained;
  const { route, isCalled, status, errorCode, errors } = verdict;
  const groupName = verdict.group ?? groupNameOf(verdict.soughtGroup ?? '');
  const group = inspection.groups.find((loaded) => loaded.group === groupName);
  /** Set for a route that leads to no controller, such as `/api/docs`. */
  const explicitTarget = route?.target === 'gateway.index' ? undefined : route?.target;
  // `verdict.operation` may be a name in the path that the step `group and operation` has refused.
  const isOperationChosen = isCalled || (verdict.operation !== '' && verdict.steps.at(-1) !== 'group and operation');
  const operation = isOperationChosen ? (explicitTarget ?? verdict.operation) : undefined;
  const outcome = isCalled ? 'called' : status === 200 ? 'preflight' : 'refused';
  const { contract, access } = group?.operations.find(({ name }) => name === verdict.operation) ?? {};
  const because = [...refusalReasons(explained, group), ...notesOn(explained, group)];
  const facts: (readonly [name: string, text: string])[] = [['row', route === undefined ? 'none' : rowText(route)]];
  if (outcome !== 'preflight') {
    if (route !== undefined && explicitTarget === undefined) facts.push(['group', groupText(group, verdict, cwd)]);
    facts.push(['operation', operation === undefined ? 'none' : (explicitTarget ?? operationText(verdict))]);
  }
  if (explicitTarget === undefined) {
    if (access !== undefined) facts.push(['access', access]);
    if (contractText(contract) !== '') facts.push(['contract', contractText(contract)]);
  }
  facts.push(['answer', ANSWERS[outcome] ?? `${status} ${errorCode}: ${verdict.message}`]);
  // With a service file that does not load, every request is refused before its first step.
  const isRefusedAtStep = outcome === 'refused' && errorCode !== 'SERVICE_NOT_LOADABLE';
  const step = isRefusedAtStep ? verdict.steps.at(-1) : undefined;
  if (step !== undefined) facts.push(['step', stepText(verdict.steps)]);
  // Only the first reason has a label.
  for (const [i, reason] of because.entries())
    facts.push([i > 0 ? '' : outcome === 'refused' ? 'because' : 'note', reason]);
  const paintAnswer = outcome === 'refused' ? ink.red : ink.green;
  const lines = alignColumns(facts).map(([name = '', text = '']) => {
    return `  ${ink.dim(name)}  ${name.startsWith('answer') ? paintAnswer(text) : text}`;
  });
  return {
    json: {
      verb: question.verb,
      target: question.target,
      outcome,
      ...(isCalled ? {} : { status, error_code: errorCode }),
      route,
      group: verdict.group,
      operation,
      application: verdict.application,
      file: group?.path,
      access,
      contract,
      step,
      errors,
      because,
    },
    text: [ink.bold(plain(`${question.verb} ${question.target}`)), ...lines].join('\n'),
    exitCode: outcome === 'refused' ? 1 : 0,
  };
}

function stepText(steps: readonly string[]): string {
  const passed = steps.slice(0, -1);
  return `${steps.at(-1)}${passed.length === 0 ? ', the first' : `, after ${passed.join(', ')}`}`;
}

/** The answers that are no refusal. Key: the outcome. */
const ANSWERS: Readonly<Record<string, string>> = {
  called: 'the operation is called',
  preflight: '200, a CORS preflight: no operation is called',
};

function rowText({ methods, path, target }: Route): string {
  return `${String(methods)} ${path} → ${target}`;
}

function groupText(group: LoadedGroup | undefined, { soughtGroup }: Verdict, cwd: string): string {
  if (group !== undefined) return `${group.group}, ${shortPlace(group.path, cwd)}`;
  return soughtGroup === undefined ? 'not looked for' : `none for ${JSON.stringify(soughtGroup)}`;
}

function operationText({ operation, isByName }: Verdict): string {
  const name = splitRouteName(operation);
  if (name !== undefined)
    return `${operation}, ${name.pattern === undefined ? 'the route of the bare group' : 'a route of the group'}`;
  return `${operation}, ${isByName ? 'named by the path' : 'chosen by the verb'}`;
}

function refusalReasons(explained: ExplainedRequest, group: LoadedGroup | undefined): string[] {
  const { verdict, inspection, cwd } = explained;
  const { errorCode, errors, reason } = verdict;
  if (errors !== undefined)
    return errors.map(({ in: part, pointer, message }) => `${part} ${pointer || '(as a whole)'} ${message}`);
  if (errorCode === 'GROUP_NOT_LOADABLE' && group !== undefined) return [`${brokenPlace(group, cwd)}: ${group.error}`];
  if (errorCode === 'ROUTE_NOT_FOUND' && group !== undefined) {
    const longerRoutes = routesOf(group).filter(({ segments }) => segments.length > 0);
    if (longerRoutes.length === 0) return [`all routes of ${group.group} are of the bare group`];
    return [`the routes of ${group.group} are ${longerRoutes.map(({ name }) => name).join(', ')}`];
  }
  if (errorCode === 'SERVICE_NOT_LOADABLE' && inspection.service !== undefined)
    return [`${brokenPlace(inspection.service, cwd)}: ${inspection.service.error}`];
  if (errorCode === 'USER_REQUIRED') return ['nobody is signed in: ask with --user ID for a request of a user'];
  if (errorCode === 'GROUP_NOT_FOUND' || errorCode === 'DELEGATED_GROUP_NOT_FOUND')
    return missingGroupReasons(explained);
  return reason === undefined ? [] : [reason];
}

function missingGroupReasons({ verdict: { soughtGroup = '' }, inspection, dir, cwd }: ExplainedRequest): string[] {
  if (soughtGroup === '') return ['the path names no group'];
  const name = groupNameOf(soughtGroup);
  if (name === undefined)
    return [`${JSON.stringify(soughtGroup)} cannot name a group: a letter, then letters, digits, _ and -`];
  const inOtherCase = inspection.groups.filter(({ group }) => group.toLowerCase() === name.toLowerCase());
  const lookAlikes = findLookAlikes(dir, [inspection.service ?? {}]).filter(
    ({ file, group }) => group === name || file.startsWith(`${soughtGroup}/`),
  );
  return [
    `there is no ${name}Controller.ts, .mjs or .js in ${shortPlace(dir, cwd)}`,
    ...inOtherCase.map(({ group }) => `letter case counts: the group ${group} answers ${urlNameOf(group)}`),
    ...lookAlikes.map(({ file, reason }) => `${file} is not a controller: ${reason}`),
  ];
}

function notesOn({ question, verdict, inspection }: ExplainedRequest, group: LoadedGroup | undefined): string[] {
  const { slugs, operation, passedRoutes, isCalled, status, application, handler, route, errorCode, steps } = verdict;
  const [slug] = slugs;
  const notes = passedRoutes.map((row) => `route ${rowText(row)} matches the path but not the method ${question.verb}`);
  if (slug !== undefined && slug !== operation && group?.ok) {
    const unexposed = group.unexposed.find(({ name }) => name === slug);
    const routes = routesOf(group);
    if (unexposed !== undefined) notes.push(`${slug} is not an operation: ${unexposed.reason}`);
    else if (VERB_OPERATIONS.has(slug) && routes.some(({ name }) => name === slug))
      notes.push(`'${slug}' is the route of the bare group, and no segment calls it`);
    else if (group.strict === undefined)
      notes.push(
        `${JSON.stringify(slug)} names no operation of ${group.group}, so the verb decides; it is params.slugs[0]`,
      );
  }
  const properties = inspection.service?.properties ?? [];
  const { access = '' } = group?.operations.find(({ name }) => name === operation) ?? {};
  if (access.includes('a function') && isCalled)
    notes.push('access has a function, which is not called here: it may refuse with 403 ACCESS_DENIED');
  if (properties.includes('authenticate') && steps.includes('access'))
    notes.push('authenticate is not called here: it may refuse with a status of its own');
  if (properties.includes('formatError') && status >= 400)
    notes.push('formatError makes the body, and may change the status');
  if (question.user !== undefined && !properties.includes('authenticate'))
    notes.push('no service file has authenticate, so --user changes nothing');
  if (group?.strict === 'service' && /^(?:ROUTE_NOT_FOUND|METHOD_NOT_ALLOWED)$/.test(errorCode ?? ''))
    notes.push(`${group.group} is strict because ${inspection.service?.file} says so`);
  if (handler !== undefined)
    notes.push(`the credential ${JSON.stringify(application)} sends every request to the group ${handler}`);
  if (isCalled && inspection.providers === 0 && route?.target.startsWith('identity.'))
    notes.push('no identity provider is configured, so it answers 503');
  if (verdict.isHeaderValue)
    notes.push('no credential has this id, so --authorization is used as the value of the header');
  if (!isCalled && status === 200 && question.target !== '*')
    notes.push('an OPTIONS without Authorization is a preflight');
  return notes;
}
