import { backoffMs } from '../../shared/lib/backoff.ts'
import type { CommandContext, Flow } from '../context/context.ts'
import { CliError, usageError } from '../errors/cli-error.ts'
import { exitStatus } from '../errors/exit-codes.ts'
import type { Client } from '../calls/client.ts'
import { callOf, printReply, sendAndPrint } from '../http/route-call.ts'
import { textAt } from '../replies/fields.ts'
import { readWait } from './wait-flag.ts'
import { localTexts } from '../arguments/values.ts'
import type { AnswerMode } from '../../shared/api/approval-words.ts'

/** How long the server may take to close a question whose time is over, and be out of reach meanwhile. */
const graceMs = 60_000

/**
 * `question ask`: asks for a free answer, for one of the options, or with --secret-name for a secret; then the text also says why the agent
 * needs it. With --wait it prints the question once it is answered; the run goes on.
 */
export const questionAsk: Flow = async (context) => {
  const { values } = context
  const waitMs = readWait(values)
  const request = values.body?.['secretRequest']
  const options = optionsOf(values)
  if (options !== null && request !== undefined) throw usageError('--option is not for secrets.')
  if (waitMs !== null && request !== undefined)
    throw usageError('--wait is not for secrets: the run stops, and the next one has the secret in its environment.')
  const secretRequest =
    request === undefined ? {} : { secretRequest: { ...(request as object), reason: values.body?.['prompt'] } }
  const asked = { answerMode: modeOf(context, { request, options }), ...(options !== null && { options }) }
  if (waitMs === null) return sendAndPrint(context, { body: { ...asked, ...secretRequest } })
  const client = await context.connect()
  const { body } = await client.call(callOf(context, { body: { ...asked, waitMs } }))
  const id = textAt((body as { question?: unknown }).question, 'id')
  if (id === null)
    throw new CliError('unusable_reply', 'The server did not name the question.', { exit: 'unreachable' })
  context.out.message(`svc: waiting for the answer to ${id}`)
  return printAnswer(context, await waitForAnswer(context, client, { id, waitMs }))
}

/** What there is to choose from; null: the answer is a text. */
function optionsOf(values: CommandContext['values']) {
  const given = localTexts(values, 'option')
  if (given.length === 0) return null
  return given.map((text) => {
    const at = text.indexOf('=')
    return at === -1 ? { key: text, label: text } : { key: text.slice(0, at), label: text.slice(at + 1) }
  })
}

function modeOf({ values }: CommandContext, { request, options }: { request: unknown; options: unknown }): AnswerMode {
  const isOfSeveral = values.local['several'] === true
  if (options !== null) return isOfSeveral ? 'multi_select' : 'single_select'
  if (isOfSeveral) throw usageError('--several needs options: --option KEY, once for each.')
  return request === undefined ? 'free_text' : 'secret_input'
}

/** The question when it is closed; null: the server said nothing of it for too long. */
async function waitForAnswer(
  { world }: CommandContext,
  client: Client,
  { id, waitMs }: { id: string; waitMs: number },
): Promise<unknown> {
  const until = world.monotonic() + waitMs + graceMs
  for (let attempt = 1; world.monotonic() < until; attempt++) {
    try {
      const { body: question } = await client.call({ method: 'GET', path: `/api/v1/questions/${id}` })
      if (textAt(question, 'status') !== 'open') return question
    } catch (error) {
      if (!(error instanceof CliError) || error.exit !== 'unreachable') throw error
    }
    await world.sleep(backoffMs(attempt, { minMs: 250, maxMs: 2_000, random: world.random() }))
  }
  return null
}

async function printAnswer(context: CommandContext, question: unknown): Promise<number> {
  if (question !== null) await printReply(context, question, 'Question')
  if (question !== null && (question as { answeredBy?: unknown }).answeredBy !== null) return exitStatus('ok')
  context.out.message('svc: nobody answered in time.')
  return exitStatus('wait_timed_out')
}
