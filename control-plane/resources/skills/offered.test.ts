import { expect, test } from 'vitest'
import type { EffectiveSkill } from './effective-store.ts'
import { skillsOfSpec } from './offered.ts'

const skill = (slug: string, more: Partial<EffectiveSkill> = {}): EffectiveSkill => ({
  slug,
  name: 'Name',
  description: null,
  sourceType: 'imported',
  pluginId: null,
  fileCount: 1,
  totalBytes: 1,
  unavailableReason: null,
  writtenByUserId: 'a',
  describedByUserId: 'a',
  bundleHash: 'f'.repeat(64),
  frontMatter: { name: null, description: null, allowedTools: [] },
  ...more,
})
const claude = { harness: 'claude' } as const
const leftOut = (skills: EffectiveSkill[]) =>
  skillsOfSpec(skills, claude).skillsLeftOut?.map(({ slug, reason }) => `${slug} ${reason}`)

test('of skills with one slug that of no plugin is had, else that of the plugin with the least id', () => {
  const ofPlugin = (pluginId: string) => skill('x', { pluginId, description: pluginId })
  const had = (...skills: EffectiveSkill[]) =>
    skillsOfSpec(skills, claude).skills?.map(({ description }) => description)
  expect(had(ofPlugin('b'), ofPlugin('a'))).toEqual(['a'])
  expect(had(ofPlugin('a'), skill('x', { description: 'own' }), ofPlugin('b'))).toEqual(['own'])
  expect(leftOut([ofPlugin('b'), ofPlugin('a')])).toEqual(['x name_taken'])
})

test('those beyond what a run takes are named, the last ones of the agent', () => {
  const many = Array.from({ length: 203 }, (_, at) => skill(`s${999 - at}`))
  expect(skillsOfSpec(many, claude).skills).toHaveLength(200)
  expect(leftOut(many)).toEqual(['s797 too_many', 's798 too_many', 's799 too_many'])
})

test('who wrote it is told with it; of one that svc brings it is nobody', () => {
  const writers = (one: EffectiveSkill) => skillsOfSpec([one], claude).skills?.[0]?.writtenBy
  expect(writers(skill('x', { describedByUserId: 'b' }))).toEqual(['a', 'b'])
  expect(writers(skill('x', { writtenByUserId: null, describedByUserId: null }))).toEqual([null])
  expect(writers(skill('x', { sourceType: 'builtin', writtenByUserId: null }))).toEqual([])
})

test('a harness that takes none is told with those that somebody chose', () => {
  const skills = [skill('b'), skill('a'), skill('svc', { sourceType: 'builtin' })]
  const spec = skillsOfSpec(skills, { harness: 'command' })
  expect(spec).toEqual({ skills: null, skillsLeftOut: ['a', 'b'].map((slug) => ({ slug, reason: 'harness' })) })
})
