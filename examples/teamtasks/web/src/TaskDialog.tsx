import { useCallback, useEffect, useRef, useState } from 'react';
import { api, type Member, type Task } from './api.ts';
import { Form } from './Form.tsx';

interface Props {
  task: Task;
  members: Member[];
  close(): void;
}
const idOf = ({ id }: Task) => ({ id });
type Comments = Awaited<ReturnType<(typeof api.tasks)['GET {id}/comments']>>;
type Attachments = Awaited<ReturnType<(typeof api.tasks)['GET {id}/attachments']>>;

export function TaskDialog({ task, members, close }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [comments, setComments] = useState<Comments>([]);
  const [attachments, setAttachments] = useState<Attachments>([]);
  const loads = useRef({ begun: 0, shown: 0 });
  const path = idOf(task);
  // After each change in the team, the list has new objects. An answer that is late is older than the one shown.
  const load = useCallback(async () => {
    const number = ++loads.current.begun;
    const path = idOf(task);
    const [comments, attachments] = await Promise.all([
      api.tasks['GET {id}/comments']({ path }),
      api.tasks['GET {id}/attachments']({ path }),
    ]);
    if (number < loads.current.shown) return;
    loads.current.shown = number;
    setComments(comments);
    setAttachments(attachments);
  }, [task]);
  useEffect(() => void load(), [load]);
  useEffect(() => dialog.current?.showModal(), []);

  const upload = async (_: unknown) => {
    const [file] = dialog.current?.querySelector<HTMLInputElement>('input[type=file]')?.files ?? [];
    if (file === undefined) return;
    await api.tasks['PUT {id}/attachments/{name}']({ path: { ...path, name: file.name }, body: file });
  };

  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="task-title">
      <header>
        <h2 id="task-title">{task.title}</h2>
        <button type="button" className="quiet" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      <label>
        Assignee
        <select
          value={task.assigneeId ?? ''}
          onChange={({ target }) =>
            api.tasks['PATCH {id}']({ path, body: { version: task.version, assigneeId: target.value || null } })
          }
        >
          <option value="">Nobody</option>
          {members.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <h3>Attachments</h3>
      <ul>
        {attachments.map(({ id, name, size }) => (
          <li key={id}>
            <a href={`/api/attachments/${id}`}>{name}</a> {Math.ceil(size / 1000)} kB
          </li>
        ))}
      </ul>
      <Form label="Attach a file" button="Attach" send={upload}>
        <label>
          File <input type="file" required />
        </label>
      </Form>
      <h3>Comments</h3>
      <ul>
        {comments.map(({ id, author, text }) => (
          <li key={id}>
            <b>{author}</b> {text}
          </li>
        ))}
      </ul>
      <Form
        label="Comment"
        button="Comment"
        send={({ text = '' }) => api.tasks['POST {id}/comments']({ path, body: { text } })}
      >
        <label>
          Comment <textarea name="text" rows={2} required />
        </label>
      </Form>
    </dialog>
  );
}
