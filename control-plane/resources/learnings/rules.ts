import type { z } from 'zod'
import type { learningKeys } from '../../../shared/api/learning-fields.ts'
import type { LearningRow } from './store.ts'

/** Decisions about learnings, and texts made of them. */

type BulletInput = z.output<typeof learningKeys.bullets>[number]

/** With the places of bullets and sources. */
export const bulletsOf = (bullets: readonly BulletInput[]): LearningRow['bullets'] =>
  bullets.map(({ text, sources }, ord) => ({
    ord,
    text,
    sources: sources.map((source, at) => ({ url: typeof source === 'string' ? source : source.url, ord: at })),
  }))

/** Each tag once. */
export function entitiesOf(entities: LearningRow['entities']): LearningRow['entities'] {
  const seen = new Set<string>()
  return entities.filter(({ type, name }) => {
    const key = JSON.stringify([type, name])
    return seen.size < seen.add(key).size
  })
}

/** The bullets with their sources, as Markdown. */
export const bulletText = (bullets: LearningRow['bullets']): string =>
  bullets.map(({ text, sources }) => [`- ${text}`, ...sources.map(({ url }) => `  - ${url}`)].join('\n')).join('\n')

/** What the reviewer of a learning reads. */
export const reviewPrompt = ({ topic, bullets }: Pick<LearningRow, 'topic' | 'bullets'>): string =>
  `Shall this go into the wiki?\n\n**${topic}**\n\n${bulletText(bullets)}`

export const withoutNote = 'Rejected without a note.'

/** The task that writes an accepted learning into the wiki. */
export const taskOf = ({ id, topic, bullets, entities }: LearningRow): { title: string; description: string } => {
  const tags = entities.map(({ type, name }) => `${type}: ${name}`).join(', ')
  return {
    title: `Add learning to wiki: ${topic}`,
    description: `Write this into the page of the wiki to which it belongs, or into a new one, with its sources as links. It is the learning ${id}.\n\n${bulletText(bullets)}${tags === '' ? '' : `\n\nTags: ${tags}`}`,
  }
}
