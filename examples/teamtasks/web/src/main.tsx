import { StrictMode, useCallback, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { api, auth, type Team } from './api.ts';
import { Form } from './Form.tsx';
import { SignIn } from './SignIn.tsx';
import { TeamView } from './TeamView.tsx';

function App() {
  const { data: session, isPending } = auth.useSession();
  if (isPending) return null;
  return session === null ? <SignIn /> : <Teams user={session.user} />;
}

function Teams({ user }: { user: { id: string; name: string; image?: string | null } }) {
  const [teams, setTeams] = useState<Team[]>([]);
  const [chosen, setChosen] = useState<number>();
  const [avatar, setAvatar] = useState(user.image && `/api/users/${user.id}/avatar`);
  const team = teams.find(({ id }) => id === chosen) ?? teams[0];
  const load = useCallback(async () => setTeams(await api.teams.GET()), []);
  useEffect(() => void load(), [load]);

  async function sendAvatar(image: File | undefined) {
    if (image === undefined) return;
    const body = new FormData();
    body.set('image', image);
    const { ok } = await fetch('/api/users/me/avatar', { method: 'PUT', body });
    if (ok) setAvatar(`/api/users/${user.id}/avatar?${Date.now()}`);
  }

  return (
    <>
      <header className="top">
        <h1>Teamtasks</h1>
        {teams.length > 0 && (
          <select aria-label="Team" value={team?.id} onChange={({ target }) => setChosen(Number(target.value))}>
            {teams.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        )}
        <Form
          label="New team"
          button="Add team"
          send={async ({ name = '' }) => {
            setChosen((await api.teams.POST({ body: { name } })).id);
            await load();
          }}
        >
          <label>
            Team <input name="name" required />
          </label>
        </Form>
        <label className="avatar">
          {avatar && <img src={avatar} alt="" width="40" height="40" />}
          {user.name}
          <input
            type="file"
            accept="image/png,image/jpeg,image/webp"
            aria-label="Your picture"
            onChange={({ target }) => sendAvatar(target.files?.[0])}
          />
        </label>
        <button type="button" className="quiet" onClick={() => auth.signOut()}>
          Sign out
        </button>
      </header>
      {team === undefined ? <p>You are in no team yet. Add one.</p> : <TeamView key={team.id} team={team} />}
    </>
  );
}

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
