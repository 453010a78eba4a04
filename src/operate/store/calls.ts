// Calls between two processes of a machine over IPC: the caller numbers its calls, and each call gets one answer.
import type { Answer, Request, ToHost } from './messages.ts';

/** @param timeoutReason the error of a call that gets no answer in time */
export function createCalls(send: (message: ToHost) => void, timeoutReason: string) {
  const pendingCalls = new Map<number, (answer: Answer) => void>();
  let lastCallNumber = 0;
  return {
    /** Never rejects: without an answer in `timeout` milliseconds, the answer is an error. */
    call(request: Request, timeout: number): Promise<Answer> {
      const callNumber = ++lastCallNumber;
      return new Promise((resolve) => {
        const timer = setTimeout(finish, timeout, { error: timeoutReason }).unref();
        pendingCalls.set(callNumber, finish);
        send({ call: callNumber, request });
        function finish(answer: Answer): void {
          clearTimeout(timer);
          pendingCalls.delete(callNumber);
          resolve(answer);
        }
      });
    },
    /** Does nothing when the call has been answered, or has run out of time. */
    answer(callNumber: number, answer: Answer): void {
      pendingCalls.get(callNumber)?.(answer);
    },
    failAll(error: string): void {
      for (const finish of pendingCalls.values()) finish({ error });
    },
  };
}
