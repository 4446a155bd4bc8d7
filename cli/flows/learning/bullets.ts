import { localTexts } from '../../arguments/values.ts'
import type { CommandContext, Flow } from '../../context/context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { sendAndPrint } from '../../http/route-call.ts'

interface Bullet {
  text: string
  sources: string[]
}

/** `learning add`, `learning update`: each --source belongs to the --bullet before it. */
export const learningWrite: Flow = async (context) => {
  const bullets = bulletsOf(context)
  const entities = localTexts(context.values, 'entity').map(entityOf)
  return sendAndPrint(context, {
    body: { ...(bullets.length > 0 && { bullets }), ...(entities.length > 0 && { entities }) },
  })
}

function bulletsOf({ values, givenFlags }: Pick<CommandContext, 'values' | 'givenFlags'>): Bullet[] {
  const left = { bullet: [...localTexts(values, 'bullet')], source: [...localTexts(values, 'source')] }
  const bullets: Bullet[] = []
  for (const flag of givenFlags) {
    if (flag === 'bullet') bullets.push({ text: left.bullet.shift()!, sources: [] })
    if (flag !== 'source') continue
    const last = bullets.at(-1)
    if (last === undefined) throw usageError('Each --source belongs to the --bullet before it: begin with a --bullet.')
    last.sources.push(left.source.shift()!)
  }
  const bare = bullets.find(({ sources }) => sources.length === 0)
  if (bare !== undefined)
    throw usageError(`The bullet \`${bare.text}\` has no source.`, 'Name one behind it with --source.')
  return bullets
}

function entityOf(text: string): { type: string; name: string } {
  const at = text.indexOf(':')
  if (at === -1) throw usageError(`\`${text}\` is no entity.`, 'Give --entity as type:name, for example repo:web.')
  return { type: text.slice(0, at), name: text.slice(at + 1) }
}
