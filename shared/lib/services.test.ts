import { expect, test } from 'vitest'
import { Services, type Service } from './services.ts'

const told: string[] = []
const service = (name: string, more: Service = {}): Service => ({
  start: () => void told.push(`start ${name}`),
  stop: () => void told.push(`stop ${name}`),
  ...more,
})
const later = (word: string) => async () => {
  await Promise.resolve()
  told.push(word)
}
const tellings = () => told.splice(0)

test('services start in their order and stop in reverse, each when the one before is done', async () => {
  const slow = service('b', { start: later('start b'), stop: later('stop b') })
  const services = new Services([service('a'), slow, service('c')])
  await services.start()
  expect(tellings()).toEqual(['start a', 'start b', 'start c'])
  await services.stop()
  expect(tellings()).toEqual(['stop c', 'stop b', 'stop a'])
})

test('services that start at once have started when the call returns', async () => {
  const starting = new Services([service('a'), {}, service('b')]).start()
  expect(tellings()).toEqual(['start a', 'start b'])
  await starting
})

test('one that fails to stop does not keep the others from it, and the first failure is told', async () => {
  const failing = (name: string) =>
    service(name, {
      stop() {
        throw new Error(`${name} does not stop`)
      },
    })
  const services = new Services([service('a'), failing('b'), failing('c')])
  await expect(services.stop()).rejects.toThrow('c does not stop')
  expect(tellings()).toEqual(['stop a'])
})

test('one that fails to start lets none after it start, and all can be stopped', async () => {
  const failing = service('b', { start: () => Promise.reject(new Error('b does not start')) })
  const services = new Services([service('a'), failing, service('c')])
  await expect(services.start()).rejects.toThrow('b does not start')
  await services.stop()
  expect(tellings()).toEqual(['start a', 'stop c', 'stop b', 'stop a'])
})

test('a stop in the middle of a start lets no further service start', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const services = new Services([service('a', { start: () => promise }), service('b')])
  const starting = services.start()
  const stopping = services.stop()
  resolve()
  await Promise.all([starting, stopping])
  expect(tellings()).toEqual(['stop b', 'stop a'])
})

test('services are stopped once, however often they are told to', async () => {
  const services = new Services([service('a', { stop: later('stop a') })])
  await Promise.all([services.stop(), services.stop()])
  await services.stop()
  expect(tellings()).toEqual(['stop a'])
})
