// /api/tags: every tag that an article has.
import type { Operations } from 'gatefold';
import { sql } from '../lib/database.ts';

export default class TagsController {
  static operations: Operations<TagsController> = { '*': { access: 'anyone' } };

  async GET(): Promise<{ tags: string[] }> {
    const rows = await sql<{ tag: string }[]>`select distinct unnest(tag_list) as tag from articles order by tag`;
    return { tags: rows.map(({ tag }) => tag) };
  }
}
