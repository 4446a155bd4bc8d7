/**
 * A built-in program: waits for the checks of a pull request, and has an agent mend what makes them fail until they pass. Its inputs
 * have the names of what an event of git tells, so an automation starts it as it is.
 */
export const fixFailingChecks = String.raw`export const meta = {
  name: 'fix_failing_checks',
  title: 'Fix failing checks',
  description: 'Waits for the checks of a pull request; an agent mends what makes them fail and pushes, until they pass.',
  inputs: [
    { key: 'branch', label: 'The branch of the pull request' },
    { key: 'repo', label: 'Its repository, as owner/name' },
    { key: 'taskRef', label: 'The task whose branch and repository are meant', kind: 'task' },
    { key: 'fixer', label: 'Who mends it', kind: 'agent' },
    { key: 'rounds', label: 'How many times it is mended at most (3)', kind: 'number' },
    { key: 'minutes', label: 'How long to wait for the checks each time (60)', kind: 'number' },
  ],
  toolPermissionMode: 'full',
}

if (!input.branch && !input.taskRef) fail('Say which pull request: give branch or taskRef.')
const rounds = Math.min(Math.max(Math.trunc(input.rounds ?? 3), 1), 10)
const deadlineMinutes = Math.min(Math.max(input.minutes ?? 60, 1), 10080)
const where = { branch: input.branch, repo: input.repo, deadlineMinutes }
const count = (n, what) => n + ' ' + what + (n === 1 ? '' : 's')
const named = (list) => list.map(({ name, url }) => '- ' + name.slice(0, 200).replace(/[\p{C}\u2028\u2029]/gu, ' ') + (url ? ' (' + url.slice(0, 500) + ')' : '')).join('\n')

for (let round = 1; ; round++) {
  phase('Checks ' + round)
  const { state, checks: found } = await checks(where)
  const failed = found.filter(({ status }) => status === 'failed')
  log('checks', round, state, failed.length)
  if (state === 'passed') return round === 1 ? 'All checks pass.' : 'All checks pass after ' + count(round - 1, 'round') + ' of mending.'
  if (state === 'timed_out') fail('The checks did not end within ' + count(deadlineMinutes, 'minute') + '.')
  if (round > rounds) fail('The checks still fail after ' + count(rounds, 'round') + ' of mending:\n' + named(failed))
  phase('Fix ' + round)
  await agent(
    'These checks of the pull request' +
      (input.branch ? ' of the branch ' + input.branch : '') +
      (input.repo ? ' in ' + input.repo : '') +
      ' fail:\n' +
      named(failed) +
      '\n\nFind out why from their logs, or by running them here. Mend the cause, not the check: no test is deleted, skipped or loosened. Check your work, commit it on that branch and push it. Then say in a few sentences what was wrong and what you changed.',
    { label: 'fix ' + round, agent: input.fixer, ...(round > 1 && { continues: 'fix ' + (round - 1) }) },
  )
}
`
