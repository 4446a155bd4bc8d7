import type { CommandContext, Flow } from '../context/context.ts'
import { CliError, usageError } from '../errors/cli-error.ts'
import { fieldAt, textAt } from '../replies/fields.ts'
import type { Client } from '../calls/client.ts'
import { callOf, fillPath, printReply } from '../http/route-call.ts'

/**
 * `question answer`: sends the text, the chosen keys, or, for a question that asks for a secret, its value from
 * standard input. A text that is the key or the label of an option chooses it.
 */
export const questionAnswer: Flow = async (context) => {
  if (context.env.run !== null)
    throw new CliError('agent_cannot_answer_question', 'Only a person answers a question, and this is a run.')
  const client = await context.connect()
  const path = fillPath('/api/v1/questions/{id}', context.values.params)
  const { body: question } = await client.call({ method: 'GET', path })
  const isSecret = textAt(question, 'answerMode') === 'secret_input' && textAt(question, 'status') === 'open'
  const { body } = isSecret ? await giveSecret(context, client, path) : await client.call(answerOf(context, question))
  await printReply(context, body)
}

function answerOf(context: CommandContext, question: unknown) {
  const answer = context.values.body?.['answer'] as { text?: string; selected?: string[] } | undefined
  if (answer === undefined)
    throw usageError('Give the answer: a text, or --select with the key of an option.', 'See `svc question get`.')
  const { text = null, selected = null } = answer
  const found = fieldAt(question, 'options')
  const options = Array.isArray(found) ? found.map((option) => [textAt(option, 'key'), textAt(option, 'label')]) : []
  const chosen = selected === null && text !== null ? keyOf(text, options) : null
  const keys = selected?.map((each) => keyOf(each, options) ?? each) ?? null
  const given = chosen === null ? { text, selected: keys } : { text: null, selected: [chosen] }
  return callOf(context, { body: { answer: given } })
}

/** The key that is meant: a key, else that of the only option whose key or label reads so, in capitals or not. */
function keyOf(said: string, options: readonly (readonly (string | null)[])[]): string | null {
  const word = said.trim()
  if (options.some(([key]) => key === word)) return word
  const alike = options.filter((option) => option.some((each) => each?.trim().toLowerCase() === word.toLowerCase()))
  return alike.length === 1 ? (alike[0]![0] ?? null) : null
}

async function giveSecret(context: CommandContext, client: Client, path: string) {
  if (context.values.body?.['answer'] !== undefined)
    throw usageError(
      'This question asks for a secret: give its value on standard input, where no list of commands keeps it.',
      'For example: svc question answer qst_... < value.txt',
    )
  return client.call({
    method: 'POST',
    path: `${path}/secret`,
    body: { value: await (await import('./secret-input.ts')).readSecret(context) },
    // With a key the server would store a hash of the value. Repeating is safe: the second request is refused.
    isKeyed: false,
  })
}
