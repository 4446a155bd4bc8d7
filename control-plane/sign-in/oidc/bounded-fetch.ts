import { certificateTrouble } from '../../../shared/lib/certificate-trouble.ts'
import { readAnswer } from '../../../shared/lib/read-answer.ts'

/** Answers of an issuer take some kilobytes. */
const answerBytes = 1024 * 1024
/** Statuses whose answers have no body. */
const bodyless = [204, 205, 304]

/** Fetches a whole answer, and fails once it is larger than an issuer's can be. */
export async function boundedFetch(url: string, options: RequestInit): Promise<Response> {
  const answer = await fetch(url, options).catch((error: unknown) => {
    const certificate = certificateTrouble(error)
    throw certificate === null
      ? error
      : new Error(`${new URL(url).host} cannot be reached: ${certificate}`, { cause: error })
  })
  const { status, statusText, headers } = answer
  const tooLarge = () => new Error(`the answer of ${new URL(url).host} is too large`)
  const body = await readAnswer(answer, answerBytes, tooLarge)
  return new Response(bodyless.includes(status) ? null : body, { status, statusText, headers })
}
