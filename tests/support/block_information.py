"""Information objects of given designs, for the tests of efficient estimates."""

import numpy as np

from sunzi.client.epsilon import parse_epsilon
from sunzi.designs.response import BlockResponse
from sunzi.numerics.toeplitz import ToeplitzGram
from sunzi.protocols.information import Information, block_information
from sunzi.protocols.modular_variance import BlockMoments


def response_of(design, epsilon=2):
    return BlockResponse(design, parse_epsilon(epsilon))


def information_of(designs, size, pilot, whole=True, epsilon=2, reports=1000.0):
    responses = [response_of(design, epsilon) for design in designs]
    blocks = [block_information(response, reports, pilot, whole) for response in responses]
    moduli = tuple(design.points for design in designs)
    moments = [BlockMoments.of(response) for response in responses]
    weights = np.array([1 / (len(designs) * (moment.light + moment.heavy / moment.points)) for moment in moments])
    return Information(size, blocks, ToeplitzGram(size, moduli, weights), reports * len(designs))
