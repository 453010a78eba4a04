// The state of one request's body while the body arrives. The files of this folder own it.
import type { Pieces } from './pieces.ts';

export class BodyState {
  /** True while the client waits for `100 Continue` before it sends the body. */
  expectsContinue = false;
  /** True when the operation reads the body as a stream. The answer can then be sent before the body is read. */
  isStreamed = false;
  /** The stream; undefined unless `isStreamed`. */
  stream: ReadableStream<Uint8Array> | undefined;
  /** True while body/budget.ts counts the body as an upload: from the start of reading until the body is complete. */
  isUploading = false;
  /** Maximum bytes that the upload can have: its announced length, or else the limit of the body. */
  maxUploadBytes = 0;
  /** The part of the body that has arrived, before inflating. */
  received: Buffer | Pieces | undefined;
  /** Bytes that body/budget.ts counts. */
  heldBytes = 0;
  /** `heldBytes` at the last check for slow uploads (body/budget.ts); -1 when the next check must not compare. */
  lastHeldBytes = -1;
  /** Called when the connection closes before the whole body has come. An event listener would cost more. */
  onLost: (() => void) | undefined;
}
