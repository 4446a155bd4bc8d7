import { idFrom, type PersonUuid, type PluginId } from '../../../shared/lib/ids.ts'
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
  writtenByUuid: idFrom<PersonUuid>('a'),
  describedByUuid: idFrom<PersonUuid>('a'),
  bundleHash: 'f'.repeat(64),
  frontMatter: { name: null, description: null, allowedTools: [] },
  ...more,
})
const claude = { harness: 'claude' } as const
const ofSpec = (skills: EffectiveSkill[]) => skillsOfSpec({ skills, hasSvcSkill: false }, claude)
const leftOut = (skills: EffectiveSkill[]) =>
  ofSpec(skills).skillsLeftOut?.map(({ slug, reason }) => `${slug} ${reason}`)

test('of skills with one slug that of no plugin is had, else that of the plugin with the least id', () => {
  const ofPlugin = (pluginId: string) => skill('x', { pluginId: idFrom<PluginId>(pluginId), description: pluginId })
  const had = (...skills: EffectiveSkill[]) => ofSpec(skills).skills?.map(({ description }) => description)
  expect(had(ofPlugin('b'), ofPlugin('a'))).toEqual(['a'])
  expect(had(ofPlugin('a'), skill('x', { description: 'own' }), ofPlugin('b'))).toEqual(['own'])
  expect(leftOut([ofPlugin('b'), ofPlugin('a')])).toEqual(['x name_taken'])
})

test('those beyond what a run takes are named, the last ones of the agent', () => {
  const many = Array.from({ length: 203 }, (_, at) => skill(`s${999 - at}`))
  expect(ofSpec(many).skills).toHaveLength(200)
  expect(leftOut(many)).toEqual(['s797 too_many', 's798 too_many', 's799 too_many'])
})

test('who wrote it is told with it', () => {
  const writers = (one: EffectiveSkill) => ofSpec([one]).skills?.[0]?.writtenBy
  expect(writers(skill('x', { describedByUuid: idFrom<PersonUuid>('b') }))).toEqual(['a', 'b'])
  expect(writers(skill('x', { writtenByUuid: null, describedByUuid: null }))).toEqual([null])
})

test('a harness that takes none is told with those that somebody chose', () => {
  const spec = skillsOfSpec({ skills: [skill('b'), skill('a')], hasSvcSkill: true }, { harness: 'command' })
  const skillsLeftOut = ['a', 'b'].map((slug) => ({ slug, reason: 'harness' }))
  expect(spec).toEqual({ skills: null, skillsLeftOut, hasSvcSkill: null })
})

test('the skill that is built in takes no room', () => {
  const many = Array.from({ length: 200 }, (_, at) => skill(`s${at}`))
  const spec = skillsOfSpec({ skills: many, hasSvcSkill: true }, claude)
  expect([spec.skills?.length, spec.skillsLeftOut, spec.hasSvcSkill]).toEqual([200, null, true])
})
