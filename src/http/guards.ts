// Calls an operation, with the guards of its group around it: `_before` may refuse or answer instead, `_after` may
// replace the result. An operation of a group without guards is called as it is.

import { isReply } from '../controller/reply.ts';
import type { ControllerParams } from '../controller.ts';
import type { Operation } from '../groups/operations.ts';
import type { Exchange } from './exchange.ts';

/** @returns what the operation returns; a promise where the group has guards */
export function perform(
  operation: Operation,
  data: unknown,
  params: ControllerParams,
  exchange: Pick<Exchange, 'settled'>,
): unknown {
  if (operation.guards === undefined) return operation.method.call(operation.controller, data, params);
  return performGuarded(operation, operation.guards, data, params, exchange);
}

async function performGuarded(
  { controller, method }: Operation,
  { before, after }: NonNullable<Operation['guards']>,
  data: unknown,
  params: ControllerParams,
  exchange: Pick<Exchange, 'settled'>,
): Promise<unknown> {
  const answer = await before?.call(controller, data, params);
  // Its client has been told that it took too long: nothing must happen that it does not know of.
  if (exchange.settled) return answer;
  if (isReply(answer)) return answer;
  // `return false` would let the request through: whoever writes that means the opposite.
  if (answer !== undefined)
    throw new TypeError('_before returned what is no Reply: throw an HttpError to refuse, return nothing to go on');
  const result = await method.call(controller, data, params);
  const replaced = await after?.call(controller, result, params);
  return replaced === undefined ? result : replaced;
}
