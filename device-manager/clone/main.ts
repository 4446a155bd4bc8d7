import { bring } from './bring.ts'
import { deliver } from './deliver.ts'
import { cloneJob, type CloneAnswer } from './job.ts'
import { CloneError, gitMessageOf } from './trouble.ts'

/** Does one job of git in a process of its own: its standard input is the job, its standard output the answer. */
async function main(): Promise<void> {
  let text = ''
  for await (const chunk of process.stdin) text += String(chunk)
  const answer = await answerTo(text)
  process.stdout.write(`${JSON.stringify(answer)}\n`)
}

async function answerTo(text: string): Promise<CloneAnswer> {
  try {
    const job = cloneJob.parse(JSON.parse(text))
    if (job.do === 'deliver') return { ok: true, delivered: await deliver(job) }
    await bring(job)
    return { ok: true }
  } catch (error) {
    const message =
      error instanceof CloneError ? error.message : `The repository cannot be cloned: ${gitMessageOf(error)}`
    return { ok: false, message: message.slice(0, 4_000) }
  }
}

// simple-git lets the error of a git that cannot be started go where nobody hears it.
process.on('uncaughtException', (error) => {
  const answer: CloneAnswer = { ok: false, message: `git could not be started: ${gitMessageOf(error)}`.slice(0, 4_000) }
  process.stdout.write(`${JSON.stringify(answer)}\n`, () => process.exit(1))
})
// No `await` here: it is written as CommonJS (scripts/build.ts).
void main()
