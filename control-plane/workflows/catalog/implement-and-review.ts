/**
 * A built-in program: an agent does a piece of work, another one reviews it, and the first goes on with what the review found. They
 * share a folder, so one works after the other.
 */
export const implementAndReview = String.raw`export const meta = {
  name: 'implement_and_review',
  title: 'Implement and review',
  description: 'One agent does the work, another one reviews it; what the review finds is fixed, and reviewed again.',
  inputs: [
    { key: 'work', label: 'What is to be done' },
    { key: 'taskRef', label: 'The task that says what is to be done', kind: 'task' },
    { key: 'implementer', label: 'Who does it', kind: 'agent' },
    { key: 'reviewer', label: 'Who reviews it', kind: 'agent' },
    { key: 'rounds', label: 'How many reviews there are at most (2)', kind: 'number' },
  ],
  toolPermissionMode: 'full',
}

if (!input.work && !input.taskRef) fail('Say what is to be done: give work or taskRef.')
const rounds = Math.min(Math.max(Math.trunc(input.rounds ?? 2), 1), 10)
const review = {
  type: 'object',
  required: ['verdict', 'findings'],
  properties: {
    verdict: { enum: ['approve', 'request_changes'] },
    findings: { type: 'array', items: { type: 'string', maxLength: 2000 }, maxItems: 50 },
  },
}

// What one agent says is told to the other line by line, as svc quotes the words of others.
const quoted = (text) => String(text).split(/\r\n|[\n\r\v\f\x85\u2028\u2029]/).map((line) => '> ' + line).join('\n')

phase('Implement')
let report = await agent(
  (input.work || 'Do what the task says.') +
    '\n\nWhen it is done, check it as this project checks its work, and say in a few sentences what you changed and how you checked it.',
  { label: 'implement', agent: input.implementer },
)

for (let round = 1; round <= rounds; round++) {
  phase('Review ' + round)
  const { verdict, findings } = await agent(
    'Review the changes in this folder against what was asked for. Change nothing.\n\nAsked for: ' +
      (input.work || 'what the task says') +
      '\n\nFor information: what the one who did it reports:\n' +
      quoted(report) +
      '\n\nApprove if the work is right and complete. Otherwise list each thing that must change, with its file and the reason.',
    { label: 'review ' + round, agent: input.reviewer, schema: review },
  )
  log('review', round, verdict, findings.length)
  if (verdict === 'approve') return 'Approved in review ' + round + '.\n\n' + report
  if (round === rounds) return 'Not approved after ' + rounds + (rounds === 1 ? ' review' : ' reviews') + '. Left to do:\n' + findings.map((one) => '- ' + one).join('\n')
  phase('Fix ' + round)
  report = await agent(
    'Request: changes for which a review asks:\n' +
      findings.map((one) => quoted('- ' + one)).join('\n') +
      '\n\nMake them, or say why one should not be made. Then check your work again and say what you changed.',
    { label: 'fix ' + round, agent: input.implementer, continues: round === 1 ? 'implement' : 'fix ' + (round - 1) },
  )
}
`
