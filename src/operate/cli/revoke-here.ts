// `gatefold credentials revoke --here` revokes on this machine while the store is away. It edits the replica, so that
// the revocation is live at once, and the list of revocations to repeat in each later replica.
import { existsSync } from 'node:fs';
import { idOfRow, type RawRow } from '../../callers/credentials/table/row.ts';
import { readRevokedHere, writeRevokedHere } from '../../callers/credentials/write/local-revocations.ts';
import { tablePath, updateTable } from '../../callers/credentials/write/table-file.ts';
import { type Answer, CommandError } from './command.ts';

/** @param isUndo for `--undo`, which removes an earlier revocation by this command */
export async function revokeHere(dataDir: string, id: string, isUndo: boolean, now: number): Promise<Answer> {
  const path = tablePath(dataDir);
  // Somewhere else, a revocation would have no effect, and the person would believe in it.
  if (!existsSync(path)) throw new CommandError(`There is no ${path}: set DATA_DIR to the data folder of the service`);
  const isKnown = await updateTable(
    dataDir,
    (table) => {
      // The list has no lock of its own. Without that of the table, two commands could lose a revocation.
      const revoked = new Map(readRevokedHere(dataDir));
      const time = revoked.get(id) ?? new Date(now).toISOString();
      if (isUndo) revoked.delete(id);
      else revoked.set(id, time);
      writeRevokedHere(dataDir, revoked);
      let isFound = false;
      for (const index of table.find(id)) {
        const row = (table.row(index) ?? {}) as RawRow;
        if (idOfRow(row) !== id) continue;
        const { revoked_at: revokedAt } = row;
        isFound = true;
        if (isUndo && revokedAt === time) table.change(index, { revoked_at: undefined });
        if (!isUndo && (revokedAt ?? undefined) === undefined) table.change(index, { revoked_at: time });
      }
      return isFound;
    },
    { isCopyAllowed: true },
  );
  return {
    json: { id, revoked_here: !isUndo },
    text: isUndo
      ? `${id} is on this machine what it is in the store.`
      : `Revoked ${id} on this machine alone. Revoke it in the store, too, when the store is back.`,
    // Another machine may have issued the key since the store is away.
    warnings: isKnown || isUndo ? [] : [`${path} has no row ${id} yet: is the id right?`],
  };
}
