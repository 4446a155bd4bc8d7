/**
 * The oldest version of each program that svc drives; an older one takes no runs. Of Cursor's none is known, since its program
 * cannot be had for tests.
 *
 * They were found by halving the list of all releases, each driven on Linux as a run host does, against a scripted model: an agent's
 * every setting, a call that was allowed and one that was refused, usage, a session that was gone on with, a run that stopped to ask,
 * and a session that was gone. Below them these fail:
 *
 * - claude 2.1.38 does all of that, but fails the test that a call is asked about also where the person's settings disable hooks. Of the
 *   versions up to 2.1.197, which passes it, none was tried so. 2.1.37 does not know `--effort`, so it exits at once;
 * - codex 0.150.1 refuses to go on with a session (`thread/resume.excludeTurns requires experimentalApi capability`);
 * - opencode 1.1.34, the next older release, ends its turn without asking the model.
 *
 * Qwen Code, which speaks ACP as an agent's own command, works from 0.21.2 on: 0.15.10 knows no `session/resume`. svc does not ask a
 * command for its version.
 */
export const lowestVersions: ReadonlyMap<string, { version: string; update: string }> = new Map([
  ['claude', { version: '2.1.197', update: 'claude update' }],
  ['codex', { version: '0.151.0', update: 'npm install -g @openai/codex@latest' }],
  ['opencode', { version: '1.1.53', update: 'opencode upgrade' }],
])
