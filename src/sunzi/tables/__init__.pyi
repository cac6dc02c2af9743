from sunzi.tables.index_lookup import UnknownValuesWarning as UnknownValuesWarning
from sunzi.tables.report_cells import Refused as Refused
from sunzi.tables.report_cells import Sifted as Sifted
from sunzi.tables.report_cells import sift_array as sift_array
from sunzi.tables.spark import privatize as privatize
from sunzi.tables.tallying import BadReportsWarning as BadReportsWarning
from sunzi.tables.tallying import sift as sift
from sunzi.tables.tallying import tally as tally
