// Asks the supervisor whether this worker may serve a group whose file came after the worker's load. The supervisor
// decides (live/supervisor/may-serve.ts). This file keeps the requests that wait for the decision. A worker begins in
// the state `loading`, so it serves no new file before the supervisor has said that its generation is accepted.
import type { Admission, Patience } from '../load/new-groups.ts';

/** The state of the newest generation, as the supervisor has last reported it. */
export type GenerationState = 'loading' | 'serving' | 'rejected';

/** `failed`: the import failed. `changed`: the folder is no longer what the generation of this worker has loaded. */
export type Answer = 'admitted' | 'failed' | 'changed';

export type Admissions = ReturnType<typeof createAdmissions>;

/** Milliseconds after which the next request asks again, although no generation has come. */
const RECHECK_TIME = 2000;
/** Number of requests that wait for a generation. Further requests are refused at once. */
const MAX_WAITING = 100;
/** Milliseconds for the supervisor's answer, which waits 14 s for an import. Only a blocked supervisor takes longer. */
const MAX_ANSWER_TIME = 15_000;

/** @param ask asks the supervisor about a group */
export function createAdmissions(ask: (group: string) => void, now = () => performance.now()) {
  /** The questions without an answer, by group. All requests for the group share one. */
  const questions = new Map<string, { readonly answer: Promise<Answer | 'none'>; resolve(answer: Answer): void }>();
  const waiters = new Set<(end: Admission | 'again') => void>();
  let state: GenerationState = 'loading';
  let isClosed = false;
  let recheckTimer: NodeJS.Timeout | undefined;

  /** Asks for a group, or waits for a generation as long as `patience` allows. Takes the wait off `patience`. */
  async function request(group: string, patience: Patience): Promise<Admission> {
    for (;;) {
      if (isClosed) return 'loading';
      if (state === 'rejected') return 'rejected';
      if (state === 'serving') {
        const answer = await answerFor(group);
        if (answer === 'admitted' || answer === 'failed') return answer;
        if (answer === 'none') return 'loading';
        expectGeneration();
      }
      const end = await waitForGeneration(patience);
      if (end !== 'again') return end;
    }
  }

  function answerFor(group: string): Promise<Answer | 'none'> {
    const open = questions.get(group);
    if (open !== undefined) return open.answer;
    const { promise, resolve } = withResolvers<Answer | 'none'>();
    const timer = setTimeout(resolve, MAX_ANSWER_TIME, 'none');
    questions.set(group, { answer: promise, resolve });
    ask(group);
    return promise.finally(() => {
      clearTimeout(timer);
      questions.delete(group);
    });
  }

  /** The folder has changed, so a generation is due. If none comes, the next request asks again. */
  function expectGeneration(): void {
    if (state !== 'serving') return;
    state = 'loading';
    recheckTimer = setTimeout(setGeneration, RECHECK_TIME, 'serving');
  }

  async function waitForGeneration(patience: Patience): Promise<Admission | 'again'> {
    if (state === 'rejected') return state;
    if (isClosed || waiters.size >= MAX_WAITING || patience.milliseconds <= 0) return 'loading';
    const begun = now();
    const { promise, resolve } = withResolvers<Admission | 'again'>();
    const timer = setTimeout(resolve, patience.milliseconds, 'loading');
    waiters.add(resolve);
    return promise.finally(() => {
      patience.milliseconds -= now() - begun;
      clearTimeout(timer);
      waiters.delete(resolve);
    });
  }

  function setGeneration(newState: GenerationState): void {
    clearTimeout(recheckTimer);
    state = newState;
    if (state !== 'loading') for (const end of waiters) end(state === 'rejected' ? 'rejected' : 'again');
  }

  return {
    request,
    settle: (group: string, answer: Answer) => questions.get(group)?.resolve(answer),
    setGeneration,
    /** Ends all waits, because this worker drains. Later requests for new groups are refused. */
    close(): void {
      isClosed = true;
      for (const { resolve } of questions.values()) resolve('changed');
      for (const end of waiters) end('loading');
    },
    /** Returns the number of requests that wait for a generation. */
    waiting: () => waiters.size,
  };
}

/** Does the work of `Promise.withResolvers`, which Node 20 lacks. */
function withResolvers<T>(): { readonly promise: Promise<T>; resolve(value: T): void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((resolvePromise) => {
    resolve = resolvePromise;
  });
  return { promise, resolve };
}
