// Where a function stands in its source: asked of V8 itself, by way of the inspector that Node brings (no port is opened),
// and led through the source map where a loader has changed the text.
import module from 'node:module';
import { fileURLToPath } from 'node:url';

export interface Place {
  /** An absolute path. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
}

export type FindPlace = (method: unknown) => Place | undefined;

interface Location {
  readonly scriptId: string;
  /** From 0, as is the column. */
  readonly lineNumber: number;
  readonly columnNumber: number;
}

const SLOT = Symbol.for('gatefold.function-places');

/** To be called with a function at a time; a Node that was built without the inspector knows no places. */
export async function createPlaceFinder(): Promise<FindPlace> {
  const inspector = await import('node:inspector').catch(() => undefined);
  if (inspector === undefined) return () => undefined;
  const session = new inspector.Session();
  session.connect();
  const urls = new Map<string, string>();
  session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
  session.post('Debugger.enable');

  function locate(method: unknown): Location | undefined {
    let location: Location | undefined;
    const slots = globalThis as unknown as Record<symbol, unknown>;
    slots[SLOT] = method;
    // A session with its own thread answers before post() returns.
    session.post('Runtime.evaluate', { expression: `globalThis[Symbol.for('${SLOT.description}')]` }, (_, found) => {
      const objectId = found?.result.objectId;
      if (objectId === undefined) return;
      session.post('Runtime.getProperties', { objectId, ownProperties: true }, (_error, properties) => {
        const slot = properties?.internalProperties?.find(({ name }) => name === '[[FunctionLocation]]');
        location = slot?.value?.value as Location | undefined;
      });
    });
    delete slots[SLOT];
    return location;
  }

  return (method) => {
    const location = locate(method);
    const url = location === undefined ? undefined : urls.get(location.scriptId);
    if (location === undefined || !url?.startsWith('file:')) return undefined;
    const { lineNumber, columnNumber } = location;
    const origin = module.findSourceMap(url)?.findEntry(lineNumber, columnNumber);
    const line = origin !== undefined && 'originalLine' in origin ? origin.originalLine : lineNumber;
    return { file: fileURLToPath(url.replace(/\?.*$/, '')), line: line + 1 };
  };
}
