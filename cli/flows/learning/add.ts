import { localTexts } from '../../arguments/values.ts'
import type { Flow } from '../../context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { sendAndPrint } from '../../http/route-call.ts'

interface Bullet {
  text: string
  sources: string[]
}

/** `learning add`: each --source belongs to the --bullet before it. */
export const learningAdd: Flow = async (context) => {
  const { values, words } = context
  const bullets = bulletsOf(words)
  const bare = bullets.find(({ sources }) => sources.length === 0)
  if (bullets.length === 0) throw usageError('Give at least one --bullet, with its --source links after it.')
  if (bare !== undefined) throw usageError(`The bullet "${bare.text}" has no --source after it.`)
  const entities = localTexts(values, 'entity').map(entityOf)
  return sendAndPrint(context, { body: { bullets, ...(entities.length > 0 && { entities }) } })
}

function bulletsOf(words: readonly string[]): Bullet[] {
  const bullets: Bullet[] = []
  for (const word of words) {
    if (word === '--') break
    const value = (flag: string) => (word.startsWith(`--${flag}=`) ? word.slice(flag.length + 3) : null)
    const [text, source] = [value('bullet'), value('source')]
    if (text !== null) bullets.push({ text, sources: [] })
    if (source === null) continue
    const last = bullets.at(-1)
    if (last === undefined) throw usageError('A --source comes after the --bullet to which it belongs.')
    last.sources.push(source)
  }
  return bullets
}

function entityOf(text: string): { type: string; name: string } {
  const at = text.indexOf(':')
  if (at <= 0 || at === text.length - 1) throw usageError(`--entity takes type:name, not \`${text}\`.`)
  return { type: text.slice(0, at), name: text.slice(at + 1) }
}
