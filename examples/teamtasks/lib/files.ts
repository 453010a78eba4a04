// Where uploads are: below the working folder, and not beside this file, because a deployment replaces that.
import { resolve } from 'node:path';

const FILES = resolve(process.env.FILES_DIR ?? 'data/files');
export const ATTACHMENTS = resolve(FILES, 'attachments');
export const AVATARS = resolve(FILES, 'avatars');
