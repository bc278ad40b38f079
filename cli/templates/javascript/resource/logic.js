// What the plugin does.

export const PLANETS = ["Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"];

// The name of a planet, by its number from the sun.
export function planet(number) {
  const name = PLANETS[number - 1];
  if (name === undefined) throw new RangeError(`there is no planet ${number}`);
  return name;
}
