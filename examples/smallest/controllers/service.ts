// The rules for all controllers of this folder.
import { defineService } from 'gatefold';

export default defineService({
  // A path that no method names is a 404, and another verb is a 405.
  strict: true,
  // A field that the type of a result does not declare is not sent.
  results: 'declared',
});
