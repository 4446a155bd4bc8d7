import type { Flow } from '../context/context.ts'
import { dollarsText } from '../output/cell.ts'
import { fieldAt, textAt } from '../replies/fields.ts'
import { callOf, printReply } from '../http/route-call.ts'

/** `costs`: what runs cost, with the sum of all on standard error where people read. */
export const costs: Flow = async (context) => {
  const { out, values, world } = context
  const times = (['since', 'until'] as const).flatMap((name) => {
    const given = values.query[name]
    return typeof given === 'string' ? [[name, timeOf(given, world.now())] as const] : []
  })
  const client = await context.connect()
  const { body } = await client.call(callOf(context, { query: Object.fromEntries(times) }))
  await printReply(context, body)
  if (out.format === 'table') out.message(`svc: ${sumOf(body)}`)
}

const lengths: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** `7d` ago as a time of the API; whatever is no such length goes as it is, and the server says what is wrong with it. */
function timeOf(given: string, now: number): string {
  const [, count, unit] = /^(\d{1,6})([mhdw])$/.exec(given) ?? []
  return count === undefined ? given : new Date(now - Number(count) * lengths[unit!]!).toISOString()
}

function sumOf(body: unknown): string {
  const number = (...path: string[]) => Number(fieldAt(body, ...path) ?? 0)
  const [runs, unknown, leftOut] = [number('total', 'runs'), number('total', 'runsWithoutCost'), number('leftOut')]
  const costUsd = textAt(body, 'total', 'costUsd')
  const parts = [
    `${runs} ${runs === 1 ? 'run' : 'runs'} since ${(textAt(body, 'since') ?? '?').slice(0, 16).replace('T', ' ')} UTC`,
    costUsd === null ? 'of none is known what it cost' : `${dollarsText(Number(costUsd))} in all`,
    ...(unknown > 0 && costUsd !== null ? [`what ${unknown} of them cost is not known`] : []),
    ...(leftOut > 0 ? [`${leftOut} more with less are not shown`] : []),
  ]
  return `${parts.join('; ')}.`
}
