import type { Flow } from '../context.ts'
import { callOf, printReply } from '../http/route-call.ts'

/** `question ask`: a free answer, or with --secret-name a secret; the text then also says why the agent needs it. */
export const questionAsk: Flow = async (context) => {
  const { values } = context
  const request = values.body?.['secretRequest']
  const secretRequest =
    request === undefined ? {} : { secretRequest: { ...(request as object), reason: values.body?.['prompt'] } }
  const answerMode = request === undefined ? 'free_text' : 'secret_input'
  const client = await context.connect()
  const { body } = await client.call(callOf(context, { body: { answerMode, ...secretRequest } }))
  await printReply(context, body)
  return 0
}
