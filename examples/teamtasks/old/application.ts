// The application that was here before. It keeps the paths that no controller has taken over.
import express from 'express';

export const old = express();

old.get('/legacy/status', (_, response) => {
  response.json({ status: 'as ever' });
});
