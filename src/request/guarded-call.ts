// Calls an operation with its guards: every `_before`, then the operation inside of each `_around`, then `_after`.
import { isReply } from '../api/controller/reply.ts';
import type { ControllerParams } from '../api/controller.ts';
import { isThenable } from '../base/values.ts';
import type { Operation } from '../groups/operations.ts';
import { limitResult } from './answer/declared-result.ts';
import { discardResult } from './answer/replies.ts';
import type { Exchange } from './exchange.ts';

/** Calls the operation with its guards. Without guards, an operation that is synchronous stays synchronous. */
export function perform(operation: Operation, data: unknown, params: ControllerParams, exchange: Exchange): unknown {
  const { filter, guards, method, controller } = operation;
  // Both arguments are always given. `method.length` does not show how many a method uses, because it does not count
  // defaults and rest parameters (decisions 3.4).
  const result =
    guards === undefined
      ? method.call(controller, data, params)
      : performGuarded(operation, guards, data, params, exchange);
  if (filter === undefined) return result;
  return isThenable(result) ? result.then((value) => limitResult(filter, value)) : limitResult(filter, result);
}

async function performGuarded(
  operation: Operation,
  { before, around, after }: NonNullable<Operation['guards']>,
  data: unknown,
  params: ControllerParams,
  exchange: Exchange,
): Promise<unknown> {
  const { controller, method, settings } = operation;
  for (const guard of before) {
    const reply = await guard.call(controller, data, params);
    // If the time limit has passed, the client has a 503. So the operation must not run any more.
    if (exchange.answer.isComplete || isReply(reply)) return reply;
    // The author may have meant a refusal, by `return false`. So the request must not pass.
    if (reply !== undefined)
      throw new TypeError(
        '_before returned a value that is no Reply: throw an HttpError to refuse, or return nothing to let the request pass',
      );
  }
  /** The results of the operation and of the guards. Only one of them is sent. */
  const results = new Set<unknown>();
  let isOver = false;
  try {
    const result = await callFrom(0).finally(() => {
      isOver = true;
    });
    results.add(result);
    const replacement = await after?.call(controller, result, params);
    return replacement === undefined ? result : replacement;
  } catch (error) {
    // Nothing sends these results, so their files and connections are closed.
    results.forEach(discardResult);
    throw error;
  }

  /** Calls the `_around` at an index, whose `next` calls the following one, or the operation behind the last one. */
  async function callFrom(index: number): Promise<unknown> {
    const guard = around[index];
    if (guard === undefined) {
      const result = await method.call(controller, data, params);
      results.add(result);
      return result;
    }
    let last: Promise<unknown> | undefined;
    // `callNext` runs at once until its first `await`. So the operation has a context such as AsyncLocalStorage.run().
    const callNext = async (isAgain: boolean): Promise<unknown> => {
      if (isOver || exchange.answer.isComplete) throw new Error('next() was called after the answer');
      if (isAgain && settings.body === 'stream')
        throw new TypeError('next() was called again, and the stream of the body can be read only once');
      return callFrom(index + 1);
    };
    const next = (): Promise<unknown> => {
      last = callNext(last !== undefined);
      return last;
    };
    const result = await guard.call(controller, next, data, params);
    if (result !== undefined) return result;
    // Without a value, the result of the operation is sent. `null` and `true` send the success message.
    if (last === undefined)
      throw new TypeError('an around function neither called next() nor returned a result: return one, or throw');
    return last;
  }
}
