import type { Flow } from '../context.ts'
import { sendAndPrint } from '../http/route-call.ts'

/**
 * `question ask`: asks for a free answer, or with --secret-name for a secret; then the text also says why the agent
 * needs it.
 */
export const questionAsk: Flow = async (context) => {
  const { values } = context
  const request = values.body?.['secretRequest']
  const secretRequest =
    request === undefined ? {} : { secretRequest: { ...(request as object), reason: values.body?.['prompt'] } }
  const answerMode = request === undefined ? 'free_text' : 'secret_input'
  return sendAndPrint(context, { body: { answerMode, ...secretRequest } })
}
